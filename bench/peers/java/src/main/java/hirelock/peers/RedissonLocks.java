// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.peers;

import java.util.Arrays;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Redisson's RLock ("lock") or RFairLock ("fair") as its documentation has them, with watchdog. A
 * replica's port ("6380") names it in the configuration; then Redisson waits for it.
 */
final class RedissonLocks {
    private static RedissonClient open(int port, String word) {
        Config config = new Config();
        String host = "redis://127.0.0.1:";
        if (word.matches("[0-9]+")) {
            config.useMasterSlaveServers()
                    .setMasterAddress(host + port)
                    .addSlaveAddress(host + word);
        } else {
            config.useSingleServer().setAddress(host + port);
        }
        return Redisson.create(config);
    }

    public static void main(String[] words) {
        boolean fair = words[0].equals("fair");
        Worker.main(Arrays.asList(words).subList(1, words.length), port -> {
            RedissonClient redisson = open(port, words[0]);
            return name -> fair ? redisson.getFairLock(name) : redisson.getLock(name);
        });
    }
}
