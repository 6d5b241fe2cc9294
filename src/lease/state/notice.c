/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Notices of tenures, delivered to the hold's callback and then to the client's. */
#include "lease/state/notice.h"

#include "base/check.h"

static void notice_tell(struct hli_tenure *tenure, struct hli_notice *notice)
{
    struct hli_name *name = tenure->name;
    const hl_client_options *settings = &name->client->settings;

    char id[HLI_FIELD_SIZE] = "";

    hli_mutex_lock(&name->mutex);
    if (name->kind->write_id)
        name->kind->write_id(tenure, id);
    const hl_event event = {.size = sizeof(event),
                            .kind = notice->kind,
                            .name = name->bytes,
                            .name_length = name->length,
                            .validity_ms = notice->validity_ms,
                            .reason = notice->reason,
                            .permit = id[0] ? id : NULL};
    hl_event_cb on_event = tenure->hold.on_event;
    void *event_arg = tenure->hold.event_arg;
    /* A warning about a hold that has ended meanwhile is of no use, and its event_arg may be gone.
     * If the hold ends after this check, the warning is delivered all the same: no release waits
     * for it (lock.h). */
    bool is_stale = notice == &tenure->warning && tenure->state != HLI_TENURE_OWN;
    notice->is_queued = false;
    hli_mutex_unlock(&name->mutex);

    if (is_stale || event.kind == HL_EVENT_RELEASE_FAILED)
        on_event = NULL;
    if (on_event)
        on_event(&event, event_arg);
    if (settings->on_event && !is_stale)
        settings->on_event(&event, settings->arg);
    hli_tenure_unref(tenure); /* the notice's */
}

static void notice_run_warning(struct hli_callback *callback)
{
    struct hli_notice *notice = HLI_PART_OF(callback, struct hli_notice, callback);

    notice_tell(HLI_OF(notice, struct hli_tenure, warning), notice);
}

static void notice_run_loss(struct hli_callback *callback)
{
    struct hli_notice *notice = HLI_PART_OF(callback, struct hli_notice, callback);

    notice_tell(HLI_OF(notice, struct hli_tenure, loss), notice);
}

static void notice_queue(struct hli_turn *turn, struct hli_tenure *tenure,
                         struct hli_notice *notice)
{
    bool is_listened_to = tenure->hold.on_event || tenure->name->client->settings.on_event;

    notice->validity_ms = hli_ms_left(turn->now, hli_hold_validity(tenure));
    if (notice->is_queued || !is_listened_to)
        return;
    notice->is_queued = true;
    HLI_PART_IS(&notice->callback, struct hli_notice, callback);
    notice->callback.run = notice == &tenure->loss ? notice_run_loss : notice_run_warning;
    hli_tenure_ref(tenure); /* the notice's, dropped after delivery */
    hli_turn_tell(turn, &notice->callback);
}

void hli_notice_warning(struct hli_turn *turn, struct hli_tenure *tenure, hl_event_kind kind)
{
    tenure->warning.kind = kind;
    tenure->warning.reason = kind == HL_EVENT_UNCONFIRMED ? "too few replicas"
                             : kind == HL_EVENT_NARROW    ? "no master to spare"
                                                          : NULL;
    notice_queue(turn, tenure, &tenure->warning);
}

void hli_notice_loss(struct hli_turn *turn, struct hli_tenure *tenure, const char *reason)
{
    tenure->loss.kind = HL_EVENT_LOST;
    tenure->loss.reason = reason;
    notice_queue(turn, tenure, &tenure->loss);
}

/* `loss` is free for it: a hold with a posted release was not lost before, and cannot be lost any
 * more. */
void hli_notice_release(struct hli_turn *turn, struct hli_tenure *tenure, const char *reason)
{
    tenure->loss.kind = HL_EVENT_RELEASE_FAILED;
    tenure->loss.reason = reason;
    notice_queue(turn, tenure, &tenure->loss);
}
