// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RBuckets;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * Counts a number in Redis up, again and again, by reading it and writing one more. Nothing but the
 * lock keeps others away meanwhile. Beside the number stands who has written it.
 */
final class Stock {
    private static final String SIDE = "java";

    private final RLock lock;
    private final RBuckets buckets;
    private final String number;
    private final String writer;
    private long turns;
    private long handovers;
    private long longestNs;

    Stock(RedissonClient redisson, RLock lock, String number, String writer) {
        this.lock = lock;
        this.buckets = redisson.getBuckets(StringCodec.INSTANCE);
        this.number = number;
        this.writer = writer;
    }

    private void count() {
        Map<String, String> now = buckets.get(number, writer);
        long next = Long.parseLong(now.get(number)) + 1;
        buckets.set(Map.of(number, Long.toString(next), writer, SIDE));
        turns++;
        if (!SIDE.equals(now.get(writer))) {
            handovers++;
        }
    }

    /** Gives "TURNS HANDOVERS LONGEST_WAIT_MS", where a handover is a turn after the other side's. */
    String serve(long ms) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
        for (long now = System.nanoTime(); now - end < 0; now = System.nanoTime()) {
            lock.lock();
            try {
                longestNs = Math.max(longestNs, System.nanoTime() - now);
                count();
            } finally {
                lock.unlock();
            }
        }
        return turns + " " + handovers + " " + TimeUnit.NANOSECONDS.toMillis(longestNs);
    }
}
