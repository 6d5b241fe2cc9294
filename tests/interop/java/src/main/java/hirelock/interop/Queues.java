// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/**
 * Clients of ZooKeeper, each with a session and a thread of its own. Their lock is Curator's: a queue
 * of ephemeral sequential nodes. An order is a line "ID CLIENT WORD ARGUMENT...", and its answer that
 * of Main.
 */
final class Queues {
    private static final int RETRY_MS = 100;

    private static final class Client {
        final Worker worker;
        CuratorFramework curator;
        InterProcessMutex lock;

        Client(Worker worker) {
            this.worker = worker;
        }

        private Object open(String address, int sessionMs, String path) throws InterruptedException {
            curator =
                    CuratorFrameworkFactory.builder()
                            .connectString(address)
                            .sessionTimeoutMs(sessionMs)
                            .connectionTimeoutMs(sessionMs)
                            .retryPolicy(new RetryOneTime(RETRY_MS))
                            .ensembleTracker(false) // it would find a way around the tests' proxy
                            .build();
            lock = new InterProcessMutex(curator, path);
            curator.start();
            curator.blockUntilConnected();
            return null;
        }

        Object obey(String[] words) throws Exception {
            switch (words[0]) {
                case "open": // ADDRESS SESSION_MS PATH
                    return open(words[1], Integer.parseInt(words[2]), words[3]);
                case "acquire":
                    lock.acquire();
                    return null;
                case "holds":
                    return lock.isAcquiredInThisProcess();
                case "release":
                    lock.release();
                    return null;
                default:
                    throw new IllegalArgumentException("there is no " + words[0]);
            }
        }
    }

    private final Answers answers = new Answers(System.out);
    private final Map<String, Client> clients = new HashMap<>();

    private Client start(String name) {
        Client client = new Client(new Worker(name, answers));
        client.worker.start();
        return client;
    }

    private void run() throws IOException {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split(" ", 3);
            Client client = clients.computeIfAbsent(parts[1], this::start);
            client.worker.add(parts[0], () -> client.obey(parts[2].split(" ")));
        }
    }

    public static void main(String[] words) throws IOException {
        new Queues().run();
        Runtime.getRuntime().halt(0);
    }
}
