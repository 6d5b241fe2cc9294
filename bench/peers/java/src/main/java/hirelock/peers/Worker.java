// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.peers;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.function.Function;

/**
 * One client process of the peers' benchmark. It speaks the driver's protocol (README.md) and knows
 * nothing of the lock that it acquires and releases.
 */
final class Worker {
    private static final long GRACE_NS = TimeUnit.SECONDS.toNanos(2);

    private final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    private final Map<String, String> option = new HashMap<>();
    private long startNs;

    /** What one thread does; the log has five times for each hold, in ns of CLOCK_MONOTONIC. */
    private final class Flow extends Thread {
        private final int number;
        private final Lock lock;
        private long[] log = new long[5 << 10];
        private volatile int used;

        Flow(int number, Lock lock) {
            this.number = number;
            this.lock = lock;
            setDaemon(true);
        }

        private void hold(long lengthNs, boolean tell) {
            long asked = System.nanoTime();
            lock.lock();
            long held = System.nanoTime();
            if (tell) {
                System.out.println("held");
            }
            if (lengthNs > 0) {
                sleepUntil(held + lengthNs);
            }
            long letGo = System.nanoTime();
            lock.unlock();
            write(number, asked, held, letGo, System.nanoTime());
        }

        private void write(long... times) {
            if (used == log.length) {
                log = Arrays.copyOf(log, 2 * used);
            }
            System.arraycopy(times, 0, log, used, times.length);
            used += times.length;
        }

        @Override
        public void run() {
            sleepUntil(startNs);
            long end = startNs + lengthNs();
            while (System.nanoTime() - end < 0) {
                hold(TimeUnit.MICROSECONDS.toNanos(number("hold-us")), false);
            }
            if (isRounds()) {
                rounds();
            }
        }

        private void rounds() {
            System.out.println("rounds");
            long phaseNs = TimeUnit.MICROSECONDS.toNanos(number("phase-us"));
            while (readLine() != null) { // "go"
                hold(ThreadLocalRandom.current().nextLong(phaseNs), true);
            }
        }
    }

    private Worker(List<String> words) {
        for (int i = 0; i + 1 < words.size(); i += 2) {
            option.put(words.get(i).substring(2), words.get(i + 1));
        }
    }

    private long number(String key) {
        return Long.parseLong(option.getOrDefault(key, "0"));
    }

    private boolean isRounds() {
        return "rounds".equals(option.get("scenario"));
    }

    private long lengthNs() {
        return TimeUnit.MILLISECONDS.toNanos(number("length-ms"));
    }

    private String readLine() {
        try {
            return in.readLine();
        } catch (IOException e) {
            return null;
        }
    }

    private static void sleepUntil(long due) {
        try {
            TimeUnit.NANOSECONDS.sleep(due - System.nanoTime());
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void warm(Lock lock) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(number("warm-ms"));
        while (System.nanoTime() - end < 0) {
            lock.lock();
            lock.unlock();
        }
    }

    /** Who is still waiting a while after the end is left behind; that hold is not in the log. */
    private void join(List<Flow> flows) throws InterruptedException {
        long last = startNs + lengthNs() + GRACE_NS;
        for (Flow flow : flows) {
            long left = TimeUnit.NANOSECONDS.toMillis(last - System.nanoTime());
            flow.join(isRounds() ? 0 : Math.max(1, left));
        }
    }

    private void write(List<Flow> flows) throws IOException {
        try (OutputStream out = Files.newOutputStream(Path.of(option.get("log")))) {
            for (Flow flow : flows) {
                int used = flow.used;
                ByteBuffer bytes = ByteBuffer.allocate(8 * used).order(ByteOrder.nativeOrder());
                bytes.asLongBuffer().put(flow.log, 0, used);
                out.write(bytes.array());
            }
        }
    }

    private void run(Function<String, Lock> make) throws IOException, InterruptedException {
        warm(make.apply(option.get("name") + ":warm:" + ProcessHandle.current().pid()));
        List<Flow> flows = new ArrayList<>();
        for (int i = 0; i < number("threads"); i++) {
            String own = number("spread") != 0 ? ":" + i : "";
            flows.add(new Flow(i, make.apply(option.get("name") + own)));
        }
        System.out.println("ready");
        startNs = Long.parseLong(readLine());
        flows.forEach(Thread::start);
        join(flows);
        write(flows);
    }

    /** Runs one worker: open gets the server's port and gives what makes a lock from a name. */
    static void main(List<String> words, Function<Integer, Function<String, Lock>> open) {
        int status = 1;
        try {
            Worker worker = new Worker(words);
            worker.run(open.apply((int) worker.number("port")));
            status = 0;
        } catch (IOException | InterruptedException | RuntimeException e) {
            e.printStackTrace();
        }
        Runtime.getRuntime().halt(status);
    }
}
