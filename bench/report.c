/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The report, as a table on stdout and as JSON. */
#include "report.h"

#include "must.h"

#include <hiredis/hiredis.h>
#include <hirelock/hirelock.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

void report_heading(const char *text)
{
    printf("\n%s\n", text);
}

static bool figure_is_met(const struct figure *figure)
{
    if (figure->at_most)
        return figure->value <= figure->target;
    return !figure->at_least || figure->value >= figure->target;
}

static void report_add(struct report *report, const struct figure *figure)
{
    must(report->count < REPORT_FIGURES, "too many figures");
    report->figure[report->count++] = *figure;
    printf("  %-58s %14.2f %-12s", figure->name, figure->value, figure->unit);
    if (figure->at_most || figure->at_least)
        printf(" target %s %g: %s", figure->at_most ? "<=" : ">=", figure->target,
               figure_is_met(figure) ? "met" : "MISSED");
    putchar('\n');
    fflush(stdout);
    if (!figure_is_met(figure))
        report->missed++;
}

static struct figure figure_of(const char *name, double value, const char *unit)
{
    struct figure figure = {.value = value, .unit = unit};

    snprintf(figure.name, sizeof(figure.name), "%s", name);
    return figure;
}

void report_figure(struct report *report, const char *name, double value, const char *unit)
{
    struct figure figure = figure_of(name, value, unit);

    report_add(report, &figure);
}

void report_at_most(struct report *report, const char *name, double value, const char *unit,
                    double target)
{
    struct figure figure = figure_of(name, value, unit);

    figure.target = target;
    figure.at_most = true;
    report_add(report, &figure);
}

void report_at_least(struct report *report, const char *name, double value, const char *unit,
                     double target)
{
    struct figure figure = figure_of(name, value, unit);

    figure.target = target;
    figure.at_least = true;
    report_add(report, &figure);
}

/* "AMD EPYC", as far as it can stand in JSON. */
static void machine_cpu(char *text, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];

    snprintf(text, size, "unknown");
    while (file && fgets(line, sizeof(line), file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        snprintf(text, size, "%s", colon + 2);
        text[strcspn(text, "\n\"\\")] = '\0';
        break;
    }
    if (file)
        fclose(file);
}

static void machine_command(char *text, size_t size, char *const *argv)
{
    size_t used = 0;

    text[0] = '\0';
    for (; *argv && used < size; argv++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "", *argv);
    for (char *bad = text; (bad = strpbrk(bad, "\"\\"));)
        *bad = '?';
}

void report_machine(struct report *report, const char *server_version, char *const *argv)
{
    char cpu[128], command[256];
    struct utsname kernel;

    machine_cpu(cpu, sizeof(cpu));
    machine_command(command, sizeof(command), argv);
    must(uname(&kernel) == 0, "uname failed");
    snprintf(report->machine, sizeof(report->machine),
             "\"cpu\": \"%s\", \"cores\": %ld, \"kernel\": \"%s %s\", \"redis\": \"%s\", "
             "\"hiredis\": \"%d.%d.%d\", \"hirelock\": \"%s\", \"command\": \"%s\"",
             cpu, sysconf(_SC_NPROCESSORS_ONLN), kernel.sysname, kernel.release, server_version,
             HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH, hl_version(), command);
    printf("machine: %s, %ld cores, %s %s, redis %s, hiredis %d.%d.%d, hirelock %s\ncommand: %s\n",
           cpu, sysconf(_SC_NPROCESSORS_ONLN), kernel.sysname, kernel.release, server_version,
           HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH, hl_version(), command);
}

static void report_write_figure(FILE *file, const struct figure *figure)
{
    fprintf(file, "    {\"name\": \"%s\", \"value\": %.4f, \"unit\": \"%s\"", figure->name,
            figure->value, figure->unit);
    if (figure->at_most || figure->at_least)
        fprintf(file, ", \"%s\": %g, \"met\": %s", figure->at_most ? "at_most" : "at_least",
                figure->target, figure_is_met(figure) ? "true" : "false");
    fputc('}', file);
}

void report_write_json(const struct report *report, const char *path)
{
    FILE *file = fopen(path, "we");

    must(file != NULL, "cannot write %s", path);
    fprintf(file, "{\n  \"machine\": {%s},\n  \"figures\": [\n", report->machine);
    for (size_t i = 0; i < report->count; i++) {
        report_write_figure(file, &report->figure[i]);
        fputs(i + 1 < report->count ? ",\n" : "\n", file);
    }
    fputs("  ]\n}\n", file);
    must(fclose(file) == 0, "cannot write %s", path);
}

const char *report_name(const char *prefix, const char *text, const char *what)
{
    static char name[128];

    snprintf(name, sizeof(name), "%s, %s: %s", prefix, text, what);
    return name;
}
