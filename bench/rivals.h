/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Rivals: processes with a client each, all of whose threads want one name all the time. */
#ifndef HL_BENCH_RIVALS_H
#define HL_BENCH_RIVALS_H

#include "crowd.h"
#include "diary.h"
#include "hold.h"
#include "scenario.h"

struct rivals {
    struct bench *bench;
    struct diary *diary; /* shared */
    struct hold hold;
    int threads;
    bool is_fair; /* they want a fair lock */
};

extern const struct crowd_job rivals_job; /* its arg is a struct rivals */

#endif
