/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Runs the tests of a program without Criterion, for ThreadSanitizer: each in a forked child with
 * its own process group, which ends with it. Speaks like Criterion: --list, --filter SUITE/NAME (a
 * glob; or CRITERION_TEST_PATTERN), -jN, the closing line. A sanitizer's report in any process of a
 * test fails that test.
 */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { TEST_SKIPPED = 121, JOBS_MAX = 64 };

struct job {
    struct hl_test *test;
    pid_t pid;
    struct deadline deadline;
    bool timed_out;
};

static struct hl_test *tests, **tests_end = &tests;
static const struct hl_test *current; /* in the child */
static char reports[] = "/tmp/hl-test-XXXXXX";
static struct job jobs[JOBS_MAX];
static int passed, failed, crashed, skipped;

/* Of the sanitizer's runtime; not there in a build without one. */
void __sanitizer_set_report_path(const char *path) __attribute__((weak));
const char *__tsan_default_options(void);

/* Several tests fork a process with threads on purpose. */
const char *__tsan_default_options(void)
{
    return "exitcode=66:die_after_fork=0:second_deadlock_stack=1:history_size=4";
}

void hl_test_register(struct hl_test *test)
{
    *tests_end = test;
    tests_end = &test->next;
}

/* ---- in the child ---- */

/* The .fini of a failed test cleans up, once. */
_Noreturn static void test_abandon(int status)
{
    static bool abandoned;
    if (!abandoned && current->options.fini != NULL) {
        abandoned = true;
        current->options.fini();
    }
    _exit(status);
}

void hl_test_fail(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dprintf(STDERR_FILENO, "[----] %s:%d: %s\n", file, line, text);
    if (hl_test_in_main_thread())
        test_abandon(HL_TEST_FAILED);
    atomic_store(hl_test_process.child_failed, true);
    _exit(HL_TEST_FAILED);
}

void hl_test_skip(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!hl_test_in_main_thread())
        hl_test_fail(file, line, "skip() outside of the test's main thread: %s", text);
    dprintf(STDERR_FILENO, "[SKIP] %s::%s: %s\n", current->suite, current->name, text);
    test_abandon(TEST_SKIPPED);
}

_Noreturn static void test_child(const struct hl_test *test, const char *report)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (__sanitizer_set_report_path != NULL)
        __sanitizer_set_report_path(report);
    current = test;
    hl_test_process_init();
    if (test->options.init != NULL)
        test->options.init();
    hl_test_run(test->body, &test->place);
    if (test->options.fini != NULL)
        test->options.fini();
    exit(HL_TEST_DONE); /* by exit(), so that the sanitizer has its last look */
}

/* ---- in the runner ---- */

/* Reports are named NAME.PID, one for each process of the test that had something to report. */
static void test_report_name(const struct hl_test *test, char ret_name[static NAME_MAX])
{
    snprintf(ret_name, NAME_MAX, "%s.%s", test->suite, test->name);
}

static void job_start(struct job *job, struct hl_test *test)
{
    char name[NAME_MAX], report[PATH_MAX];
    test_report_name(test, name);
    snprintf(report, sizeof report, "%s/%s", reports, name);
    double timeout_s = hl_test_timeout_s(test->options.timeout);
    *job = (struct job){.test = test, .deadline = {.at_ns = now_ns() + (int64_t)(timeout_s * 1e9)}};
    job->pid = fork();
    if (job->pid == 0)
        test_child(test, report);
    if (job->pid < 0) {
        perror("fork");
        exit(2);
    }
    setpgid(job->pid, job->pid); /* both parent and child set it; the timeout needs the group */
}

/* Prints and removes a file of the sanitizer. */
static void report_print(const char *path)
{
    char line[4096];
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        fputs(line, stderr);
    if (file != NULL)
        fclose(file);
    unlink(path);
}

static bool test_print_reports(const struct hl_test *test)
{
    char name[NAME_MAX], path[PATH_MAX];
    test_report_name(test, name);
    size_t length = strlen(name);
    bool found = false;
    DIR *dir = opendir(reports);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        if (strncmp(entry->d_name, name, length) != 0 || entry->d_name[length] != '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", reports, entry->d_name);
        report_print(path);
        found = true;
    }
    if (dir != NULL)
        closedir(dir);
    return found;
}

static void job_fail(const struct job *job, int *counter, const char *why)
{
    fprintf(stderr, "[FAIL] %s::%s: %s\n", job->test->suite, job->test->name, why);
    (*counter)++;
}

static void job_judge(const struct job *job, const siginfo_t *end)
{
    bool exited = end->si_code == CLD_EXITED;
    char why[64];
    bool reported = test_print_reports(job->test);
    if (job->timed_out) {
        job_fail(job, &failed, "Timed out.");
    } else if (!exited) {
        snprintf(why, sizeof why, "CRASH! signal %d", end->si_status);
        job_fail(job, &crashed, why);
    } else if (reported || end->si_status == 66) {
        job_fail(job, &failed, "the sanitizer reported");
    } else if (end->si_status == HL_TEST_DONE) {
        passed++;
    } else if (end->si_status == TEST_SKIPPED) {
        skipped++;
    } else {
        snprintf(why, sizeof why, "ended with status %d", end->si_status);
        job_fail(job, &failed, why);
    }
}

/* The group is killed before its leader is reaped, as then the number may be another's. */
static bool job_finish(struct job *job)
{
    siginfo_t end = {0};
    if (waitid(P_PID, (id_t)job->pid, &end, WEXITED | WNOHANG | WNOWAIT) < 0 || end.si_pid == 0)
        return false;
    kill(-job->pid, SIGKILL);
    waitpid(job->pid, NULL, 0);
    job_judge(job, &end);
    job->test = NULL;
    return true;
}

/* Sleeps until a child ends or 100 ms are over, which is as exact as a timeout has to be. */
static void jobs_wait(int limit)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigtimedwait(&child, NULL, &(struct timespec){.tv_nsec = 100000000});
    for (struct job *job = jobs; job < jobs + limit; job++) {
        if (job->test == NULL || job_finish(job) || !deadline_is_over(job->deadline))
            continue;
        job->timed_out = true;
        kill(-job->pid, SIGKILL);
    }
}

static struct job *jobs_find_free(int limit)
{
    for (struct job *job = jobs; job < jobs + limit; job++)
        if (job->test == NULL)
            return job;
    return NULL;
}

static bool jobs_are_running(int limit)
{
    for (const struct job *job = jobs; job < jobs + limit; job++)
        if (job->test != NULL)
            return true;
    return false;
}

static bool test_matches(const struct hl_test *test, const char *pattern)
{
    return pattern == NULL || fnmatch(pattern, test->place.what, 0) == 0;
}

static int tests_run(const char *pattern, int limit)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    if (mkdtemp(reports) == NULL) {
        perror(reports);
        return 2;
    }
    if (hl_test_before_all != NULL)
        hl_test_before_all();
    for (struct hl_test *test = tests; test != NULL; test = test->next) {
        struct job *job;
        while ((job = jobs_find_free(limit)) == NULL)
            jobs_wait(limit);
        if (test_matches(test, pattern))
            job_start(job, test);
    }
    while (jobs_are_running(limit))
        jobs_wait(limit);
    rmdir(reports);
    if (hl_test_after_all != NULL)
        hl_test_after_all();
    fprintf(stderr, "[====] Synthesis: Tested: %d | Passing: %d | Failing: %d | Crashing: %d\n",
            passed + failed + crashed, passed, failed + crashed, crashed);
    if (skipped > 0)
        fprintf(stderr, "[====] Skipped: %d\n", skipped);
    return failed + crashed > 0;
}

static int tests_list(void)
{
    int count = 0;
    for (const struct hl_test *test = tests; test != NULL; test = test->next, count++)
        puts(test->place.what);
    printf("all: %d tests\n", count);
    return 0;
}

static int usage(const char *program)
{
    fprintf(stderr, "usage: %s [--list] [--filter SUITE/NAME] [-jN]\n", program);
    return 2;
}

static int jobs_limit(const char *text)
{
    long count = text != NULL ? strtol(text, NULL, 10) : sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > JOBS_MAX ? JOBS_MAX : (int)count;
}

int main(int argc, char **argv)
{
    const char *pattern = getenv("CRITERION_TEST_PATTERN");
    int limit = jobs_limit(getenv("CRITERION_JOBS"));
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0)
            return tests_list();
        if (strncmp(argv[i], "-j", 2) == 0)
            limit = jobs_limit(argv[i] + 2);
        else if (strcmp(argv[i], "--filter") == 0 && i + 1 < argc)
            pattern = argv[++i];
        else
            return usage(argv[0]);
    }
    return tests_run(pattern, limit);
}
