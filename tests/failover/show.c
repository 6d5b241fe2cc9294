/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Scenes side by side, without a grace and with one, and a table of what happened in them.
 * HL_FAILOVER_TIMES multiplies the rounds: 1 makes 20 failovers and 12 restarts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"
#include "support/test.h"

struct show_part {
    const struct ending *ending;
    int scenes, rounds; /* of each */
};

static const struct show_part show_parts[] = {
    {&sentinel_kill, 4, 3}, {&cluster_kill, 2, 2}, {&cluster_takeover, 1, 4},
    {&restart_empty, 1, 4}, {&restart_old, 1, 4},  {&restart_cut, 1, 4},
};
enum {
    SHOW_PARTS = sizeof show_parts / sizeof show_parts[0],
    SHOW_SCENES = 4, /* of a part, at most */
    SHOW_TIMEOUT_S = 3000
};

struct show_row {
    int rounds, unasked;
    uint64_t holds, doubles, lost_updates, old_tokens;
    uint64_t judged_doubles; /* of scenes whose masters failed only when they were to */
    int64_t longest_ns;
    unsigned heard_kept, heard, unheard_kept, unheard;
    int64_t without_ms[SHOW_SCENES * SCENE_ROUNDS];
};

static void show_add_fates(const struct scene_fates *fates, unsigned *kept, unsigned *all)
{
    *kept += atomic_load(&fates->kept);
    *all += atomic_load(&fates->kept) + atomic_load(&fates->lost);
}

static void show_add(struct show_row *row, const struct scene *scene)
{
    row->unasked += scene->unasked;
    row->holds += atomic_load(&scene->holds);
    row->doubles += scene->doubles;
    row->judged_doubles += scene->unasked == 0 ? scene->doubles : 0;
    row->lost_updates += scene->late == 0 ? scene->lost_updates : 0;
    row->old_tokens += atomic_load(&scene->old_tokens);
    show_add_fates(&scene->heard, &row->heard_kept, &row->heard);
    show_add_fates(&scene->unheard, &row->unheard_kept, &row->unheard);
    if (scene->longest_double_ns > row->longest_ns)
        row->longest_ns = scene->longest_double_ns;
    memcpy(row->without_ms + row->rounds, scene->without_ms,
           (size_t)scene->rounds * sizeof row->without_ms[0]);
    row->rounds += scene->rounds;
}

/* Whatever the verdict, no call may have a result that no caller should see. */
static void show_gather(struct process *process, struct show_row *row)
{
    const struct scene *scene = process_shared(process);

    check(process_await(process, SCENE_JUDGED, 1, SHOW_TIMEOUT_S * 1000));
    show_add(row, scene);
    check_msg(atomic_load(&scene->strange) == 0, "%s: %u strange results; the first: %s",
              scene->ending->title, atomic_load(&scene->strange), scene->strange_text);
    check_int(process_finish(process, SHOW_TIMEOUT_S * 1000), 0);
}

static int show_order(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static void show_tell(const char *title, struct show_row *row)
{
    char kept[2][24];

    qsort(row->without_ms, (size_t)row->rounds, sizeof row->without_ms[0], show_order);
    snprintf(kept[0], sizeof kept[0], "%u of %u", row->heard_kept, row->heard);
    snprintf(kept[1], sizeof kept[1], "%u of %u", row->unheard_kept, row->unheard);
    tell_figure("%-22s %6d %8" PRIu64 " %8" PRIu64 " %8.3f %8" PRIu64 " %7" PRIu64
                " %12s %12s %8.1f",
                title, row->rounds, row->holds, row->doubles, (double)row->longest_ns / 1e9,
                row->lost_updates, row->old_tokens, kept[0], kept[1],
                (double)row->without_ms[row->rounds / 2] / 1e3);
    if (row->unasked > 0)
        tell_figure("%-22s replaced %d masters that lived: the machine is too busy", title,
                    row->unasked);
}

/* All scenes at once. */
static void show(bool has_grace, struct show_row row[SHOW_PARTS])
{
    struct scene_options options[SHOW_PARTS];
    struct process *process[SHOW_PARTS][SHOW_SCENES];
    const char *times = getenv("HL_FAILOVER_TIMES");

    for (int i = 0; i < SHOW_PARTS; i++) {
        options[i] =
            (struct scene_options){.ending = show_parts[i].ending,
                                   .rounds = show_parts[i].rounds * (times ? atoi(times) : 1),
                                   .has_grace = has_grace};
        for (int n = 0; n < show_parts[i].scenes; n++)
            process[i][n] = process_start(scene_run, &options[i]);
    }
    tell_figure("%-22s %6s %8s %8s %8s %8s %7s %12s %12s %8s",
                has_grace ? "with a grace" : "without a grace", "failed", "holds", "doubles",
                "longest", "updates", "tokens", "kept", "kept", "without");
    tell_figure("%-22s %6s %8s %8s %8s %8s %7s %12s %12s %8s", "", "", "", "", "s", "lost", "again",
                "known", "unknown", "s");
    for (int i = 0; i < SHOW_PARTS; i++) {
        for (int n = 0; n < show_parts[i].scenes; n++)
            show_gather(process[i][n], &row[i]);
        show_tell(show_parts[i].ending->title, &row[i]);
    }
}

/* What a grace is there to prevent. */
static void show_without(void)
{
    static struct show_row row[SHOW_PARTS];
    uint64_t doubles = 0;

    show(false, row);
    for (int i = 0; i < SHOW_PARTS; i++)
        doubles += row[i].doubles;
    check_msg(doubles > 0, "no double hold: what a grace prevents did not come up");
}

/* A master that lived when another took its place is nobody's plan, and old_master_ms has no time
 * for it. */
static void show_with(void)
{
    static struct show_row row[SHOW_PARTS];

    show(true, row);
    for (int i = 0; i < SHOW_PARTS; i++) {
        const char *title = show_parts[i].ending->title;
        check_msg(row[i].judged_doubles == 0, "%s: %" PRIu64 " double holds", title,
                  row[i].judged_doubles);
        check_msg(row[i].unasked > 0 || row[i].lost_updates == 0, "%s: %" PRIu64 " updates lost",
                  title, row[i].lost_updates);
        check_msg(row[i].unasked > 0 || row[i].old_tokens == 0, "%s: %" PRIu64 " tokens again",
                  title, row[i].old_tokens);
        check_msg(row[i].unheard_kept > 0, "%s: no hold came through", title);
    }
}

Test(failover, lets_two_owners_hold_one_name_at_once_but_not_with_a_grace,
     .timeout = 2 * SHOW_TIMEOUT_S)
{
    show_without();
    show_with();
}
