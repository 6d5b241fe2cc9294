/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The names of public enumerators, for logs. */
#include <hirelock/client.h>

const char *hl_event_name(hl_event_kind kind)
{
    switch (kind) {
    case HL_EVENT_JEOPARDY:
        return "jeopardy";
    case HL_EVENT_SAFE:
        return "safe";
    case HL_EVENT_LOST:
        return "lost";
    case HL_EVENT_DISCONNECTED:
        return "disconnected";
    case HL_EVENT_CONNECTED:
        return "connected";
    case HL_EVENT_RELEASE_FAILED:
        return "release failed";
    case HL_EVENT_MASTER_CHANGED:
        return "master changed";
    case HL_EVENT_MASTER_ISOLATED:
        return "master isolated";
    case HL_EVENT_UNCONFIRMED:
        return "unconfirmed";
    case HL_EVENT_GRACE:
        return "grace";
    case HL_EVENT_MASTER_CONFIRMED:
        return "master confirmed";
    case HL_EVENT_NARROW:
        return "narrow";
    case HL_EVENT_CHANNELS_DENIED:
        return "channels denied";
    }
    return "unknown event";
}

const char *hl_log_level_name(hl_log_level level)
{
    switch (level) {
    case HL_LOG_ERROR:
        return "error";
    case HL_LOG_WARN:
        return "warning";
    case HL_LOG_INFO:
        return "info";
    case HL_LOG_DEBUG:
        return "debug";
    }
    return "unknown level";
}
