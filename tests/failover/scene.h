/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A scene: servers whose master fails again and again, each time with writes that nobody else has,
 * and processes that hold locks there meanwhile. It is judged by what its processes believed.
 *
 * The process of a scene (scene_run) owns the servers and makes the rounds; its children (load_run)
 * hold the locks. All of them share struct scene.
 */
#ifndef HL_FAILOVER_SCENE_H
#define HL_FAILOVER_SCENE_H

#include <hirelock/hirelock.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "support/process.h"

enum {
    SCENE_PROCESSES = 4,
    SCENE_LONG = 6,          /* names that are held from one failover to the next, ... */
    SCENE_UNHEARD = 4,       /* of which the first are taken when the replica hears nothing more */
    SCENE_SHORT = 4,         /* names that are held for a moment */
    SCENE_SHORT_THREADS = 3, /* of each process */
    SCENE_NAMES = SCENE_LONG + SCENE_SHORT,
    SCENE_ROUNDS = 200,    /* at most */
    SCENE_UNHEARD_MS = 200 /* what a master writes for so long is lost with it */
};

struct scene_name {
    char text[48];
    hl_lock_kind kind;            /* HL_LOCK_WRITE: some of its owners read */
    _Atomic uint32_t turn;        /* of a long name: its owner gives it up when this changes */
    _Atomic uint32_t taken;       /* the turn for which it was taken last */
    _Atomic uint64_t counter;     /* written only by who holds the name, without any other lock */
    _Atomic uint64_t steps, late; /* writes; those whose hold was over right after */
    _Atomic uint64_t token;       /* of a fenced name: the largest so far */
};

/* A thread that holds a long name through failovers. */
struct scene_seat {
    _Atomic int64_t since_ns; /* 0: it holds nothing */
    _Atomic uint32_t decided; /* the last round of which it knows how its hold came through */
};

/* What became of the holds that were up when the master failed. */
struct scene_fates {
    _Atomic uint32_t kept; /* the next master has them, too */
    _Atomic uint32_t lost;
};

struct scene {
    const struct ending *ending;
    int rounds; /* to make */
    bool has_grace;
    char url[SCENE_PROCESSES][256]; /* each process is told the servers in another order */
    char tag[16];                   /* the end of each name */
    char histories[64];             /* the directory for them */
    int64_t lease_ms;
    struct scene_name name[SCENE_NAMES];
    struct scene_seat seat[SCENE_PROCESSES][SCENE_LONG];
    atomic_bool stops;
    _Atomic uint32_t round;   /* from 1 */
    _Atomic int64_t began_ns; /* the master of the round was alive at this time; ... */
    _Atomic int64_t ended_ns; /* ... and gives nothing any more from this one on; 0: it may */
    _Atomic int64_t fresh_ns; /* the next one gave a name that nobody had before */
    _Atomic uint64_t holds;
    _Atomic uint64_t old_tokens; /* fencing tokens that were not larger than all before them */
    struct scene_fates heard, unheard; /* holds that a replica had, and those that none had */
    atomic_uint strange;               /* results of calls that no caller should see */
    char strange_text[200];
    /* The verdict. */
    int64_t without_ms[SCENE_ROUNDS]; /* for so long no name could be taken that was free */
    uint64_t doubles;                 /* holds that began in another owner's */
    int64_t longest_double_ns;
    uint64_t lost_updates, late; /* of the counters */
    int unasked; /* masters that were replaced while they lived, as on a machine that is too busy */
};

/* How a master ends, and who takes its place. The functions are for the scene's process. */
struct ending {
    const char *title;
    int64_t old_master_ms; /* for so long an old master may go on */
    int64_t lease_ms;      /* so that two thirds of it outlast the failure; an idle machine's */
    void (*start)(struct scene *scene);  /* the servers, and scene_at() */
    void (*settle)(struct scene *scene); /* returns when the next failure can come */
    /* What has been written is safe; what is written from now on will be lost. False: the master is
     * another one by now, and all has to settle first. */
    bool (*cut)(const struct scene *scene);
    /* The old master fails, and a next one is there; calls scene_old_master_ended(). */
    void (*fail)(struct scene *scene);
    void (*stop)(void);
};

extern const struct ending sentinel_kill, cluster_kill, cluster_takeover, restart_empty,
    restart_old, restart_cut;

void scene_old_master_ended(struct scene *scene);

/* Where process i finds the servers. */
void scene_at(struct scene *scene, int i, const char *url);

/* The body of the scene's process, whose shared memory begins with a struct scene. It tells
 * SCENE_JUDGED when the verdict is there. */
enum { SCENE_JUDGED };
void scene_run(struct process *self, void *options);
struct scene_options {
    const struct ending *ending;
    int rounds;
    bool has_grace;
};

/* The body of a process of the load, which tells LOAD_HAS_BEGUN. */
enum { LOAD_HAS_BEGUN };
struct load_job {
    struct scene *scene;
    int index;
};
void load_run(struct process *self, void *job);
void load_history_path(const struct scene *scene, int index, char ret_path[128]);
enum { LOAD_RECORDS = 1000000 }; /* of a history; the file is sparse */

#endif
