// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import java.util.Arrays;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;

/** A thread that does one thing after the other, and tells when each ended, and how. */
final class Worker extends Thread {
    private record Task(String id, Callable<Object> body) {}

    private final BlockingQueue<Task> tasks = new LinkedBlockingQueue<>();
    private final Answers answers;

    Worker(String name, Answers answers) {
        super(name);
        this.answers = answers;
        setDaemon(true);
    }

    void add(String id, Callable<Object> body) {
        tasks.add(new Task(id, body));
    }

    /** Does it wait for a message, or for its next look? Redisson has semaphores of Java's for it. */
    boolean isAsleep() {
        return Arrays.stream(getStackTrace())
                .anyMatch(
                        frame ->
                                frame.getClassName().equals(Semaphore.class.getName())
                                        || frame.getMethodName().equals("sleep"));
    }

    @Override
    public void run() {
        for (; ; ) {
            try {
                Task task = tasks.take();
                answers.give(task.id, task.body);
            } catch (InterruptedException e) {
                // It came after what it was meant to end, and is of no concern to the next task.
                continue;
            }
        }
    }
}
