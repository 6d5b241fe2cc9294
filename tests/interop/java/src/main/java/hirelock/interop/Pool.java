// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RAtomicLong;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** Takes a permit and gives it back, again and again; no more are ever inside than there are. */
abstract class Pool {
    private final RAtomicLong inside;
    private final long permits;
    private long turns;

    /** INSIDE PERMITS MS, of which the last is for use(). */
    private Pool(RedissonClient redisson, Words words) {
        this.inside = redisson.getAtomicLong(words.text(0));
        this.permits = words.number(1);
    }

    static Pool of(RedissonClient redisson, RSemaphore semaphore, Words words) {
        return new Pool(redisson, words) {
            @Override
            String take() throws InterruptedException {
                semaphore.acquire();
                return null;
            }

            @Override
            void giveBack(String permit) {
                semaphore.release();
            }
        };
    }

    static Pool of(RedissonClient redisson, RPermitExpirableSemaphore semaphore, Words words) {
        return new Pool(redisson, words) {
            @Override
            String take() throws InterruptedException {
                return semaphore.acquire();
            }

            @Override
            void giveBack(String permit) {
                semaphore.release(permit);
            }
        };
    }

    abstract String take() throws InterruptedException;

    abstract void giveBack(String permit);

    private void turn() throws InterruptedException {
        String permit = take();
        try {
            long now = inside.incrementAndGet();
            if (now > permits) {
                throw new IllegalStateException(now + " inside");
            }
            inside.decrementAndGet();
            turns++;
        } finally {
            giveBack(permit);
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
