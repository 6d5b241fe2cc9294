// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import java.util.Arrays;
import org.redisson.config.BaseMasterSlaveServersConfig;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;
import org.redisson.config.SentinelServersConfig;

/** Redisson's configuration for a URL of hirelock's. */
final class Servers {
    private static final String CLUSTER = "redis-cluster://";
    private static final String SENTINEL = "redis-sentinel://";
    private static final int SCAN_MS = 1000;

    private Servers() {}

    /** Small pools and few threads, as many clients share a small machine; else the defaults. */
    static Config config(String url) {
        Config config = new Config().setThreads(4).setNettyThreads(2);
        if (url.startsWith(CLUSTER)) {
            useCluster(config.useClusterServers(), url.substring(CLUSTER.length()));
        } else if (url.startsWith(SENTINEL)) {
            useSentinel(config.useSentinelServers(), url.substring(SENTINEL.length()));
        } else {
            config.useSingleServer().setAddress(url).setConnectionMinimumIdleSize(2);
        }
        return config;
    }

    /** HOST:PORT,... */
    private static String[] addresses(String hosts) {
        return Arrays.stream(hosts.split(",")).map(host -> "redis://" + host).toArray(String[]::new);
    }

    /** A replica may not have yet what C has written to its master a moment ago. */
    private static void readMasters(BaseMasterSlaveServersConfig<?> servers) {
        servers.setReadMode(ReadMode.MASTER)
                .setMasterConnectionMinimumIdleSize(2)
                .setSlaveConnectionMinimumIdleSize(1);
    }

    private static void useCluster(ClusterServersConfig servers, String hosts) {
        readMasters(servers);
        servers.setScanInterval(SCAN_MS).addNodeAddress(addresses(hosts));
    }

    /** HOST:PORT,.../MASTER */
    private static void useSentinel(SentinelServersConfig servers, String rest) {
        String[] parts = rest.split("/", 2);
        readMasters(servers);
        servers.setScanInterval(SCAN_MS)
                .setMasterName(parts[1])
                .addSentinelAddress(addresses(parts[0]));
    }
}
