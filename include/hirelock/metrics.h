/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Metrics: what the statistics, the histograms and the nodes of clients say, as text for Prometheus
 * (prometheus.io, "Exposition formats", text format 0.0.4). docs/metrics.md lists the metrics.
 */
#ifndef HIRELOCK_METRICS_H
#define HIRELOCK_METRICS_H

#include <hirelock/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A label of the program's own, client="orders". The name has letters, digits and underscores, and
 * begins neither with a digit nor with two underscores (prometheus.io, "Data model"). The value is
 * any text in UTF-8; other bytes are written as U+FFFD. The last label of a list has the name NULL.
 * This struct does not change. */
typedef struct hl_label {
    const char *name, *value;
} hl_label;

/* The Content-Type of the HTTP response that carries the text. */
#define HL_METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/*
 * Writes the metrics of `count` clients as one text, as snprintf() does: at most `size` bytes with
 * the NUL at the end, and the whole length is the result. A text that was cut has to be written
 * again, to a buffer with some room beyond that length, since the numbers grow. 16 KiB for each
 * client and 1 KiB for each of its nodes are enough, with labels of up to 40 bytes.
 *
 * Each metric stands in the text once, with the samples of all clients, as the format wants it. So
 * a program that has several clients calls this once for all of them. labels[i] are the labels of
 * clients[i], NULL for none; `labels` itself may be NULL. Several clients need labels that differ.
 * A buffer of NULL with a size of 0 asks for the length.
 *
 * Threads: any, also a callback, but not hl_credentials_cb and hl_address_map_cb. It waits for each
 * client's loop, as hl_client_nodes does, and not for servers.
 * Returns: the length without the NUL; HL_EINVAL (NULL, no client, a name that no label has or that
 * the metrics have, "le", "address", "role", "reason", "kind", "answer" and "version", a name
 * twice, or two clients with the same labels; hl_err_last says which); HL_ENOMEM; HL_ECLOSED;
 * HL_EFORKED. What the buffer has then is not specified.
 */
HL_API int hl_metrics_format(hl_client *const *clients, const hl_label *const *labels, size_t count,
                             char *buffer, size_t size);

#ifdef __cplusplus
}
#endif
#endif
