// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.peers;

import java.util.Arrays;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson's RLock ("lock") or RFairLock ("fair") as its documentation has them, with watchdog. */
final class RedissonLocks {
    private static RedissonClient open(int port) {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
        return Redisson.create(config);
    }

    public static void main(String[] words) {
        boolean fair = words[0].equals("fair");
        Worker.main(Arrays.asList(words).subList(1, words.length), port -> {
            RedissonClient redisson = open(port);
            return name -> fair ? redisson.getFairLock(name) : redisson.getLock(name);
        });
    }
}
