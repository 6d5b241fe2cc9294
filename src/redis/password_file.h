/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A password in a file, as Docker and Kubernetes mount it. */
#ifndef HLI_REDIS_PASSWORD_FILE_H
#define HLI_REDIS_PASSWORD_FILE_H

#include <hirelock/error.h>

/* Where a password is read from, and how an error of it is told. */
struct hli_password_file {
    const char *option; /* "password_file" */
    const char *path;   /* borrowed */
    int code;           /* of an error */
};

/* Reads it; one newline at its end is none of the password. *ret_password is an owned secret.
 * Errors: file->code, HL_ENOMEM. */
int hli_password_file_read(const struct hli_password_file *file, char **ret_password,
                           hl_error *err);

#endif
