/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Are the headers and the library those of one version, and does the library run? No server is
 * there: an open says so. */
#include <hirelock/hirelock.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    char compiled[32];
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    snprintf(compiled, sizeof(compiled), "%d.%d.%d", HL_VERSION_MAJOR, HL_VERSION_MINOR,
             HL_VERSION_PATCH);
    int rc = hl_client_open("unix:///nonexistent", NULL, &client, &err);
    printf("hirelock %s: %s\n", hl_version(), err.text);
    hl_client_close(client);
    return strcmp(hl_version(), compiled) != 0 || rc == 0;
}
