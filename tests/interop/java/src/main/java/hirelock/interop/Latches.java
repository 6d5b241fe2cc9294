// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.redisson.api.RCountDownLatch;
import org.redisson.api.RedissonClient;

/** RCountDownLatch. */
final class Latches {
    private Latches() {}

    static void addTo(Actions actions) {
        Actions.Kind<RCountDownLatch> kind =
                actions.kind("latch", RedissonClient::getCountDownLatch);
        kind.gives("await", Latches::await)
                .does("countDown", (latch, words) -> latch.countDown())
                .gives("getCount", (latch, words) -> latch.getCount())
                .gives("trySetCount", (latch, words) -> latch.trySetCount(words.number(0)))
                .gives("delete", (latch, words) -> latch.delete());
    }

    /** [WAIT] */
    private static Object await(RCountDownLatch latch, Words words) throws InterruptedException {
        if (words.count() > 0) {
            return latch.await(words.number(0), MILLISECONDS);
        }
        latch.await();
        return true;
    }
}
