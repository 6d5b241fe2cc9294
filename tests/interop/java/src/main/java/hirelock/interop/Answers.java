// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import java.io.PrintStream;
import java.util.concurrent.Callable;

/** One line for each task: "ID ENDED_NS = VALUE" or "ID ENDED_NS ! CLASS: MESSAGE". */
final class Answers {
    private final PrintStream out;

    Answers(PrintStream out) {
        this.out = out;
    }

    /** Whatever the task throws, errors included, is its answer. */
    void give(String id, Callable<Object> body) {
        String result;
        long endedNs;
        try {
            Object value = body.call();
            endedNs = System.nanoTime();
            result = "= " + (value == null ? "-" : value);
        } catch (Throwable e) {
            endedNs = System.nanoTime();
            result = "! " + e.getClass().getName() + ": " + e.getMessage();
        }
        String line = id + " " + endedNs + " " + result.replace('\n', ' ');
        synchronized (out) {
            out.println(line);
            out.flush();
        }
    }
}
