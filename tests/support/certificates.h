/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Keys and certificates of a test, made anew as files of a directory. */
#ifndef HL_TEST_CERTIFICATES_H
#define HL_TEST_CERTIFICATES_H

/* Becomes the files NAME.pem and NAME.key. */
struct certificate {
    const char *name;
    const char *issuer;  /* the NAME of the authority; NULL: itself, as an authority does */
    const char *hosts;   /* "DNS:localhost,IP:127.0.0.1"; NULL: none */
    int begins_in_days;  /* 0: valid since an hour ago */
    int ends_in_seconds; /* 0: valid for a day; may be negative */
};

void certificate_make(const char *dir, const struct certificate *certificate);

/* NAME.pem and NAME.key of another directory of the same file system are in this one, too: links.
 */
void certificate_share(const char *from_dir, const char *dir, const char *name);

#endif
