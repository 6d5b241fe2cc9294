// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.List;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;

/** RPermitExpirableSemaphore. Several ids stand in one word, with commas. */
final class Permits {
    private Permits() {}

    static void addTo(Actions actions) {
        Actions.Kind<RPermitExpirableSemaphore> kind =
                actions.kind("permits", RedissonClient::getPermitExpirableSemaphore);
        kind.gives("acquire", Permits::acquire)
                .gives("tryAcquire", Permits::tryAcquire)
                .gives("acquireMany", Permits::acquireMany)
                .gives("tryAcquireMany", Permits::tryAcquireMany)
                .does("release", (permits, words) -> permits.release(words.text(0)))
                .does("releaseMany", (permits, words) -> permits.release(words.texts(0)))
                .gives("tryRelease", (permits, words) -> permits.tryRelease(words.text(0)))
                .gives("tryReleaseMany", (permits, words) -> permits.tryRelease(words.texts(0)))
                .gives("updateLeaseTime", Permits::updateLeaseTime)
                .gives("getLeaseTime", (permits, words) -> permits.getLeaseTime(words.text(0)));
        addCounts(kind);
    }

    private static void addCounts(Actions.Kind<RPermitExpirableSemaphore> kind) {
        kind.gives("availablePermits", (permits, words) -> permits.availablePermits())
                .gives("acquiredPermits", (permits, words) -> permits.acquiredPermits())
                .gives("getPermits", (permits, words) -> permits.getPermits())
                .gives(
                        "trySetPermits",
                        (permits, words) -> permits.trySetPermits((int) words.number(0)))
                .does("setPermits", (permits, words) -> permits.setPermits((int) words.number(0)))
                .does("addPermits", (permits, words) -> permits.addPermits((int) words.number(0)))
                .gives("delete", (permits, words) -> permits.delete())
                .uses(
                        "use",
                        (redisson, permits, words) ->
                                Pool.of(redisson, permits, words).use(words.number(2)));
    }

    /** [LEASE] */
    private static Object acquire(RPermitExpirableSemaphore permits, Words words)
            throws InterruptedException {
        if (words.count() == 0) {
            return permits.acquire();
        }
        return permits.acquire(words.number(0), MILLISECONDS);
    }

    /** [WAIT LEASE] */
    private static Object tryAcquire(RPermitExpirableSemaphore permits, Words words)
            throws InterruptedException {
        if (words.count() == 0) {
            return permits.tryAcquire();
        }
        return permits.tryAcquire(words.number(0), words.number(1), MILLISECONDS);
    }

    /** PERMITS [LEASE] */
    private static Object acquireMany(RPermitExpirableSemaphore permits, Words words)
            throws InterruptedException {
        int count = (int) words.number(0);
        return joined(
                words.count() == 1
                        ? permits.acquire(count)
                        : permits.acquire(count, words.number(1), MILLISECONDS));
    }

    /** PERMITS WAIT LEASE */
    private static Object tryAcquireMany(RPermitExpirableSemaphore permits, Words words)
            throws InterruptedException {
        int count = (int) words.number(0);
        return joined(
                permits.tryAcquire(count, words.number(1), words.number(2), MILLISECONDS));
    }

    private static Object updateLeaseTime(RPermitExpirableSemaphore permits, Words words) {
        return permits.updateLeaseTime(words.text(0), words.number(1), MILLISECONDS);
    }

    private static String joined(List<String> ids) {
        return String.join(",", ids);
    }
}
