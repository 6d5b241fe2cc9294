// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import java.time.Duration;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** RSemaphore. The number of permits is 1 if it is not given. */
final class Semaphores {
    private Semaphores() {}

    static void addTo(Actions actions) {
        Actions.Kind<RSemaphore> kind =
                actions.kind("semaphore", RedissonClient::getSemaphore);
        kind.does("acquire", (semaphore, words) -> semaphore.acquire(count(words)))
                .gives("tryAcquire", Semaphores::tryAcquire)
                .does("release", (semaphore, words) -> semaphore.release(count(words)))
                .gives(
                        "releaseIfExists",
                        (semaphore, words) -> semaphore.releaseIfExists(count(words)))
                .gives("trySetPermits", (semaphore, words) -> semaphore.trySetPermits(count(words)))
                .does("addPermits", (semaphore, words) -> semaphore.addPermits(count(words)))
                .gives("drainPermits", (semaphore, words) -> semaphore.drainPermits())
                .gives("availablePermits", (semaphore, words) -> semaphore.availablePermits())
                .gives("delete", (semaphore, words) -> semaphore.delete())
                .uses(
                        "use",
                        (redisson, semaphore, words) ->
                                Pool.of(redisson, semaphore, words).use(words.number(2)));
    }

    private static int count(Words words) {
        return (int) words.number(0, 1);
    }

    /** [PERMITS [WAIT]] */
    private static Object tryAcquire(RSemaphore semaphore, Words words)
            throws InterruptedException {
        if (words.count() < 2) {
            return semaphore.tryAcquire(count(words));
        }
        return semaphore.tryAcquire(count(words), Duration.ofMillis(words.number(1)));
    }
}
