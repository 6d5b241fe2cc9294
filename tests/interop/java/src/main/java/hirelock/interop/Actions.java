// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import java.util.HashMap;
import java.util.Map;
import java.util.function.BiFunction;
import org.redisson.api.RedissonClient;

/** All actions by their names, KIND.METHOD, where the methods have Redisson's names. */
final class Actions {
    /** A method of Redisson's objects; the name has been used up by finding the object. */
    @FunctionalInterface
    interface Method<T> {
        Object call(T object, Words words) throws InterruptedException;
    }

    /** A method that gives nothing. */
    @FunctionalInterface
    interface Order<T> {
        void give(T object, Words words) throws InterruptedException;
    }

    /** More than a method: what is done with the object and with other things of its client. */
    @FunctionalInterface
    interface Use<T> {
        Object of(RedissonClient redisson, T object, Words words) throws InterruptedException;
    }

    private final Map<String, Action> actions = new HashMap<>();

    Actions(Clients clients) {
        Locks.addTo(this, clients);
        Semaphores.addTo(this);
        Permits.addTo(this);
        Latches.addTo(this);
    }

    Action find(String name) {
        Action action = actions.get(name);
        if (action == null) {
            throw new IllegalArgumentException("there is no " + name);
        }
        return action;
    }

    /** How an object of one kind is found, and what it can do. */
    final class Kind<T> {
        private final String kind;
        private final BiFunction<RedissonClient, Words, ? extends T> finder;

        private Kind(String kind, BiFunction<RedissonClient, Words, ? extends T> finder) {
            this.kind = kind;
            this.finder = finder;
        }

        Kind<T> uses(String method, Use<? super T> body) {
            actions.put(
                    kind + "." + method,
                    (redisson, words) -> body.of(redisson, finder.apply(redisson, words), words));
            return this;
        }

        Kind<T> gives(String method, Method<? super T> body) {
            return uses(method, (redisson, object, words) -> body.call(object, words));
        }

        Kind<T> does(String method, Order<? super T> body) {
            return gives(
                    method,
                    (object, words) -> {
                        body.give(object, words);
                        return null;
                    });
        }
    }

    <T> Kind<T> kind(String kind, BiFunction<RedissonClient, String, ? extends T> finder) {
        return new Kind<>(kind, (redisson, words) -> finder.apply(redisson, words.name()));
    }

    <T> Kind<T> kindOfMany(String kind, BiFunction<RedissonClient, Words, ? extends T> finder) {
        return new Kind<>(kind, finder);
    }
}
