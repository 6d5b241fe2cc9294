// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RBucket;
import org.redisson.api.RFencedLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.LongCodec;

/** Holds a fenced lock again and again; each token must be greater than the one written last. */
final class Tokens {
    private final RFencedLock lock;
    private final RBucket<Long> last;
    private long turns;

    Tokens(RedissonClient redisson, RFencedLock lock, String last) {
        this.lock = lock;
        this.last = redisson.getBucket(last, LongCodec.INSTANCE);
    }

    private void turn() {
        long token = lock.lockAndGetToken();
        try {
            long before = last.get();
            if (token <= before) {
                throw new IllegalStateException("token " + token + " after " + before);
            }
            last.set(token);
            turns++;
        } finally {
            lock.unlock();
        }
    }

    /** Gives the number of turns. */
    long serve(long ms) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
        while (System.nanoTime() - end < 0) {
            turn();
        }
        return turns;
    }
}
