// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.redisson.RedissonMultiLock;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Everything that is an RLock. Times are in ms; a lease of -1 is renewed by the watchdog. */
final class Locks {
    private Locks() {}

    static void addTo(Actions actions, Clients clients) {
        addLock(actions.kind("lock", RedissonClient::getLock));
        addLock(actions.kind("fair", RedissonClient::getFairLock));
        addLock(actions.kind("spin", RedissonClient::getSpinLock));
        addLock(actions.kind("single", RedissonClient::getNonReentrantLock));
        addLock(actions.kind("singleFair", RedissonClient::getNonReentrantFairLock));
        addLock(actions.kind("read", (redisson, name) -> redisson.getReadWriteLock(name).readLock()));
        addLock(
                actions.kind(
                        "write", (redisson, name) -> redisson.getReadWriteLock(name).writeLock()));
        addLock(actions.kindOfMany("multi", Locks::multi));
        addLock(actions.kindOfMany("servers", (redisson, words) -> servers(clients, words)));
        Actions.Kind<RFencedLock> fenced = actions.kind("fenced", RedissonClient::getFencedLock);
        addLock(fenced);
        addTokens(fenced);
    }

    private static RLock multi(RedissonClient redisson, Words words) {
        return redisson.getMultiLock(
                words.names().stream().map(redisson::getLock).toArray(RLock[]::new));
    }

    /** CLIENT:NAME,... */
    private static RLock servers(Clients clients, Words words) {
        return new RedissonMultiLock(
                words.names().stream()
                        .map(place -> place.split(":", 2))
                        .map(place -> clients.redisson(place[0]).getLock(place[1]))
                        .toArray(RLock[]::new));
    }

    private static void addLock(Actions.Kind<? extends RLock> kind) {
        kind.does("lock", (lock, words) -> lock.lock(words.number(0, -1), MILLISECONDS));
        kind.does("lockInterruptibly", (lock, words) -> lock.lockInterruptibly());
        kind.gives("tryLock", Locks::tryLock);
        kind.does("unlock", (lock, words) -> lock.unlock());
        kind.gives("forceUnlock", (lock, words) -> lock.forceUnlock());
        kind.gives("isLocked", (lock, words) -> lock.isLocked());
        kind.gives("isHeldByCurrentThread", (lock, words) -> lock.isHeldByCurrentThread());
        kind.gives("getHoldCount", (lock, words) -> lock.getHoldCount());
        kind.gives("remainTimeToLive", (lock, words) -> lock.remainTimeToLive());
        kind.uses("serve", Locks::serve);
    }

    /** NUMBER WRITER MS */
    private static Object serve(RedissonClient redisson, RLock lock, Words words) {
        return new Stock(redisson, lock, words.text(0), words.text(1)).serve(words.number(2));
    }

    /** [WAIT [LEASE]]; without a wait time it does not wait at all. */
    private static Object tryLock(RLock lock, Words words) throws InterruptedException {
        if (words.count() == 0) {
            return lock.tryLock();
        }
        return lock.tryLock(words.number(0), words.number(1, -1), MILLISECONDS);
    }

    private static void addTokens(Actions.Kind<RFencedLock> fenced) {
        fenced.gives("getToken", (lock, words) -> lock.getToken())
                .gives("lockAndGetToken", (lock, words) -> lock.lockAndGetToken())
                .gives("tryLockAndGetToken", Locks::tryLockAndGetToken)
                .uses("serveTokens", Locks::serveTokens);
    }

    /** LAST MS */
    private static Object serveTokens(RedissonClient redisson, RFencedLock lock, Words words) {
        return new Tokens(redisson, lock, words.text(0)).serve(words.number(1));
    }

    private static Object tryLockAndGetToken(RFencedLock lock, Words words) {
        if (words.count() == 0) {
            return lock.tryLockAndGetToken();
        }
        return lock.tryLockAndGetToken(words.number(0), words.number(1, -1), MILLISECONDS);
    }
}
