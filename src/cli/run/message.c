/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/run/message.h"

#include <errno.h>
#include <sys/socket.h>

void run_tell(int socket, enum run_message_kind kind, int value, uint64_t token)
{
    const struct run_message message = {.kind = kind, .value = value, .token = token};

    while (send(socket, &message, sizeof(message), MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

bool run_hear(int socket, struct run_message *ret_message)
{
    ssize_t got;

    do
        got = recv(socket, ret_message, sizeof(*ret_message), 0);
    while (got < 0 && errno == EINTR);
    return got == sizeof(*ret_message);
}
