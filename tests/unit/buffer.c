/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The byte buffer: what goes in at the end comes out at the front. */

#include "base/buffer.h"

#include "base/random.h"
#include "support/test.h"

#include <string.h>

Test(buffer, gives_back_a_stream_of_bytes_in_order)
{
    struct hli_buffer buffer = {0};
    unsigned char in = 0, out = 0;
    for (int round = 0; round < 5000; round++) {
        unsigned char piece[64];
        size_t length = (size_t)hli_random_upto(sizeof piece);
        for (size_t i = 0; i < length; i++)
            piece[i] = in++;
        check_int(hli_buffer_append(&buffer, piece, length), 0);
        size_t take = (size_t)hli_random_upto((int64_t)hli_buffer_length(&buffer));
        for (size_t i = 0; i < take; i++)
            check_int((unsigned char)hli_buffer_front(&buffer)[i], out++);
        hli_buffer_consume(&buffer, take);
    }
    hli_buffer_deinit(&buffer);
}

Test(buffer, does_not_grow_for_a_stream_that_is_read)
{
    struct hli_buffer buffer = {0};
    for (int i = 0; i < 100000; i++) {
        check_int(hli_buffer_append(&buffer, "0123456789", 10), 0);
        hli_buffer_consume(&buffer, i == 0 ? 5 : 10); /* never empty */
    }
    check_int(hli_buffer_length(&buffer), 5);
    check(buffer.size < 1000);
    hli_buffer_deinit(&buffer);
}

Test(buffer, is_empty_when_cleared)
{
    struct hli_buffer buffer = {0};
    check_int(hli_buffer_append(&buffer, "secret", 6), 0);
    hli_buffer_clear(&buffer);
    check_int(hli_buffer_length(&buffer), 0);
    check_int(hli_buffer_append(&buffer, "x", 1), 0);
    check_int(hli_buffer_front(&buffer)[0], 'x');
    hli_buffer_deinit(&buffer);
    check(buffer.data == NULL);
}
