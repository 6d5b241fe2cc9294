// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RAtomicLong;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** Takes a permit and gives it back, again and again; no more are ever inside than there are. */
final class Pool {
    private final RSemaphore semaphore;
    private final RAtomicLong inside;
    private final long permits;
    private long turns;

    Pool(RedissonClient redisson, RSemaphore semaphore, String inside, long permits) {
        this.semaphore = semaphore;
        this.inside = redisson.getAtomicLong(inside);
        this.permits = permits;
    }

    private void turn() throws InterruptedException {
        semaphore.acquire();
        try {
            long now = inside.incrementAndGet();
            if (now > permits) {
                throw new IllegalStateException(now + " inside");
            }
            inside.decrementAndGet();
            turns++;
        } finally {
            semaphore.release();
        }
    }

    /** Gives the number of turns. */
    long use(long ms) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
        while (System.nanoTime() - end < 0) {
            turn();
        }
        return turns;
    }
}
