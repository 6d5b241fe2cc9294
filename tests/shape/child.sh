#!/bin/sh
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# child.sh SOURCE OBJECT...: what `hirelock run` does between fork and exec, in src/cli/run/child.c,
# calls only functions that are safe there although the process had threads: another thread may have
# held any lock of the C library at the fork, and nobody unlocks it in the child.

# shellcheck disable=SC2254 # what a case compares with here is a pattern

. "$(dirname "$0")/tally.sh"
set -f
shift

# POSIX's list (signal-safety(7)); glibc's manual says it of execvpe, strerrordesc_np and prctl, too.
safe='fork _exit close dup2 execve getpgid getpgrp getpid getppid kill read setpgid sigaction sigaddset
    sigemptyset signal sigprocmask strcmp strlen tcgetpgrp tcsetpgrp write
    execvpe strerrordesc_np prctl
    __errno_location __stack_chk_fail _GLOBAL_OFFSET_TABLE_ __sysv_signal
    __gcov_*'

judge() { # SYMBOL
    for pattern in $safe; do
        case $1 in $pattern) pass && return ;; esac
    done
    fail "src/cli/run/child.c calls $1 between fork and exec"
}

for object; do
    case $object in */run/child.c.o) ;; *) continue ;; esac
    for symbol in $(nm -u "$object" | awk '{ sub(/@.*/, "", $2); print $2 }'); do
        judge "$symbol"
    done
done
finish
