// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import org.redisson.api.RedissonClient;

/** What a worker can be told to do; its result is printed, null as "-". */
@FunctionalInterface
interface Action {
    Object run(RedissonClient redisson, Words words) throws InterruptedException;
}
