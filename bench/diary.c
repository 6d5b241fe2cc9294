/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The diary: an array, in the order of the turns. */
#include "diary.h"

#include "instant.h"

struct turn *diary_begin_turn(struct diary *diary, int process)
{
    int64_t now = instant_now();
    size_t place = atomic_fetch_add_explicit(&diary->count, 1, memory_order_relaxed);
    struct turn *turn = &diary->turn[place < DIARY_TURNS ? place : DIARY_TURNS - 1];

    turn->process = process;
    turn->got_at = now;
    return turn;
}

uint64_t diary_read(struct diary *diary, struct samples *ret_hands)
{
    size_t count = atomic_load(&diary->count);
    uint64_t switches = 0;

    count = count < DIARY_TURNS ? count : DIARY_TURNS - 1;
    for (size_t i = 1; i < count; i++) {
        const struct turn *last = &diary->turn[i - 1], *next = &diary->turn[i];
        if (next->process == last->process)
            continue;
        samples_add(ret_hands, (double)(next->got_at - last->gave_at) / 1e3);
        switches++;
    }
    atomic_store(&diary->count, 0);
    return switches;
}
