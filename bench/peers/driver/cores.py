# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""Placement: the server on one core, all clients on another."""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1


def pick(free):
    """The server's core and the clients'; None where the scheduler decides."""
    cores = sorted(os.sched_getaffinity(0))
    if free or len(cores) < 2:
        return None, None
    return cores[0], cores[-1]


def pinned(core):
    """What a child does before it becomes another program: it dies with the driver, too."""
    libc = ctypes.CDLL(None)

    def prepare():
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if core is not None:
            os.sched_setaffinity(0, {core})

    return prepare
