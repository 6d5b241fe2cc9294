// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** The Redisson clients that were opened, by their names, each with its workers. */
final class Clients {
    private static final class Client {
        final RedissonClient redisson;
        final Map<String, Worker> workers = new HashMap<>();

        Client(RedissonClient redisson) {
            this.redisson = redisson;
        }
    }

    private final Map<String, Client> clients = new ConcurrentHashMap<>();
    private final Answers answers;

    Clients(Answers answers) {
        this.answers = answers;
    }

    String open(String name, String url, long watchdogMs) {
        Config config = Servers.config(url);
        if (watchdogMs > 0) {
            config.setLockWatchdogTimeout(watchdogMs);
        }
        Client client = new Client(Redisson.create(config));
        clients.put(name, client);
        return client.redisson.getId();
    }

    void close(String name) {
        Client client = find(name);
        clients.remove(name);
        client.redisson.shutdown(0, 5, TimeUnit.SECONDS);
    }

    /** Ends what a test has left behind that did not come to its end. */
    void closeAll() {
        for (String name : clients.keySet().toArray(new String[0])) {
            clients.get(name).workers.values().forEach(Thread::interrupt);
            close(name);
        }
    }

    private Client find(String name) {
        Client client = clients.get(name);
        if (client == null) {
            throw new IllegalArgumentException("there is no client " + name);
        }
        return client;
    }

    RedissonClient redisson(String name) {
        return find(name).redisson;
    }

    Worker worker(String client, String name) {
        return find(client).workers.computeIfAbsent(name, this::start);
    }

    private Worker start(String name) {
        Worker worker = new Worker(name, answers);
        worker.start();
        return worker;
    }
}
