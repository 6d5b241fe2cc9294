/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Reading a password from a file, straight into the memory of a secret. */
#include "redis/password_file.h"

#include "base/error.h"
#include "base/secret.h"
#include "redis/login.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The longest password, a newline of Windows, and one byte that shows that there is more. */
enum { FILE_ROOM = HLI_LOGIN_LIMIT + 3 };

static int file_fail(const struct hli_password_file *file, const char *reason, hl_error *err)
{
    return hli_fail(err, file->code, "%s '%s': %s", file->option, file->path, reason);
}

static int file_fail_by(const struct hli_password_file *file, int problem, hl_error *err)
{
    char reason[96];

    return file_fail(file, hli_error_reason(reason, sizeof(reason), problem), err);
}

/* -1, and errno has the reason. */
static ssize_t file_read(int fd, char *text)
{
    size_t length = 0;

    while (length < FILE_ROOM) {
        ssize_t got = read(fd, text + length, FILE_ROOM - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        length += (size_t)got;
    }
    return (ssize_t)length;
}

static size_t file_cut_newline(char *text, size_t length)
{
    if (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    else
        return length;
    if (length > 0 && text[length - 1] == '\r')
        text[--length] = '\0';
    return length;
}

static int file_take(const struct hli_password_file *file, int fd, char *text, hl_error *err)
{
    ssize_t got = file_read(fd, text);

    if (got < 0)
        return file_fail_by(file, errno, err);
    size_t length = file_cut_newline(text, (size_t)got);
    if (length == 0)
        return file_fail(file, "it is empty", err);
    if (length > HLI_LOGIN_LIMIT)
        return file_fail(file, "it is longer than 16,384 bytes", err);
    if (strlen(text) < length)
        return file_fail(file, "it has a NUL in it", err);
    return 0;
}

/* A pipe could be read only once, and would keep the loop waiting. */
static int file_open(const struct hli_password_file *file, int *ret_fd, hl_error *err)
{
    struct stat stat;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = 0;

    if (fd < 0)
        return file_fail_by(file, errno, err);
    if (fstat(fd, &stat) < 0)
        rc = file_fail_by(file, errno, err);
    else if (!S_ISREG(stat.st_mode))
        rc = file_fail(file, "it is no regular file", err);
    if (rc < 0)
        close(fd);
    else
        *ret_fd = fd;
    return rc;
}

int hli_password_file_read(const struct hli_password_file *file, char **ret_password, hl_error *err)
{
    int fd = -1;
    int rc = file_open(file, &fd, err);

    if (rc < 0)
        return rc;
    char *text = hli_secret_new(FILE_ROOM);
    rc = text ? file_take(file, fd, text, err) : hli_no_memory(err);
    close(fd);
    if (rc == 0)
        *ret_password = text;
    else
        hli_secret_free(text);
    return rc;
}
