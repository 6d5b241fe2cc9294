/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The histogram: powers of two of microseconds. */

#include "base/histogram.h"

#include "support/test.h"

#include <pthread.h>

static void add_us(struct hli_histogram *histogram, int64_t us)
{
    hli_histogram_add(histogram, us * 1000);
}

Test(histogram, puts_each_sample_into_the_bucket_of_its_power_of_two)
{
    static const struct {
        int64_t us;
        int bucket;
    } cases[] = {{0, 0}, {1, 1}, {2, 2}, {3, 2}, {4, 3}, {1023, 10}, {1024, 11}, {1 << 30, 31}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hli_histogram histogram = {0};
        hl_histogram read;
        add_us(&histogram, cases[i].us);
        hli_histogram_read(&histogram, &read);
        check_int(read.bucket[cases[i].bucket], 1);
        check_int(read.count, 1);
        check_int(read.sum_us, cases[i].us);
        check_int(read.max_us, cases[i].us);
    }
}

Test(histogram, leaves_all_that_is_longer_to_the_last_bucket)
{
    struct hli_histogram histogram = {0};
    hl_histogram read;
    hli_histogram_add(&histogram, HLI_NEVER);
    hli_histogram_add(&histogram, -1);
    hli_histogram_read(&histogram, &read);
    check_int(read.bucket[31], 1);
    check_int(read.bucket[0], 1);
    check_int(read.max_us, HLI_NEVER / 1000);
}

static void *add_many(void *histogram)
{
    for (int i = 0; i < 10000; i++)
        add_us(histogram, i);
    return NULL;
}

Test(histogram, loses_no_sample_of_two_threads)
{
    static struct hli_histogram histogram;
    pthread_t thread;
    hl_histogram read;
    uint64_t sum = 0;
    check_int(pthread_create(&thread, NULL, add_many, &histogram), 0);
    add_many(&histogram);
    pthread_join(thread, NULL);
    hli_histogram_read(&histogram, &read);
    for (int i = 0; i < 32; i++)
        sum += read.bucket[i];
    check_int(sum, 20000);
    check_int(read.count, 20000);
    check_int(read.max_us, 9999);
    check_int(read.sum_us, 9999 * 10000);
}
