/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* What a JVM is started with. */
#include "java.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *java_build(void)
{
    static char path[256];
    const char *dir = getenv("HL_INTEROP_BUILD");
    snprintf(path, sizeof path, "%s/java", dir && *dir ? dir : HL_INTEROP_BUILD);
    return path;
}

const char *java_lacks(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/classes/hirelock/interop/Main.class", java_build());
    if (access(path, R_OK) != 0)
        return "the Java side is not built: script/interop does it";
    return system("command -v java >/dev/null") == 0 ? NULL : "there is no java in PATH";
}

/* It lives for seconds on a small machine, so it shall start soon rather than run fast. What
 * libraries warn of, and the JVM itself, is in the log. */
struct worker *java_start(const char *class)
{
    char path[1100], name[96];
    snprintf(name, sizeof name, "hirelock.interop.%s", class);
    snprintf(path, sizeof path, "%s/classes:%s/lib/*", java_build(), java_build());
    char *argv[] = {"java",
                    "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1",
                    "-Xmx256m",
                    "-XX:+DisplayVMOutputToStderr",
                    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                    "-cp",
                    path,
                    name,
                    NULL};
    return worker_start(argv);
}
