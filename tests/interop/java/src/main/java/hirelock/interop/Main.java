// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.redisson.api.RedissonClient;

/**
 * Reads orders on its input until that ends, and answers on its output; tests/interop/README.md has
 * the language.
 */
final class Main {
    private static final String ITSELF = "-";

    private final Answers answers = new Answers(System.out);
    private final Clients clients = new Clients(answers);
    private final Actions actions = new Actions(clients);

    private Worker worker(String who) {
        String[] names = who.split("/", 2);
        return clients.worker(names[0], names[1]);
    }

    private Object manage(List<String> words) {
        switch (words.get(0)) {
            case "open":
                return clients.open(words.get(1), words.get(2), Long.parseLong(words.get(3)));
            case "close":
                clients.close(words.get(1));
                return null;
            case "closeAll":
                clients.closeAll();
                return null;
            case "interrupt":
                worker(words.get(1)).interrupt();
                return null;
            case "isAsleep":
                return worker(words.get(1)).isAsleep();
            default:
                throw new IllegalArgumentException("there is no " + words.get(0));
        }
    }

    private void hand(String id, String who, List<String> words) {
        Action action = actions.find(words.get(0));
        Words rest = new Words(words.subList(1, words.size()));
        RedissonClient redisson = clients.redisson(who.split("/", 2)[0]);
        worker(who).add(id, () -> action.run(redisson, rest));
    }

    /** ID CLIENT/WORKER ACTION NAME WORD..., or ID - ORDER WORD... */
    private void obey(List<String> line) {
        String id = line.get(0);
        List<String> words = line.subList(2, line.size());
        if (line.get(1).equals(ITSELF)) {
            answers.give(id, () -> manage(words));
            return;
        }
        try {
            hand(id, line.get(1), words);
        } catch (RuntimeException e) {
            answers.give(
                    id,
                    () -> {
                        throw e;
                    });
        }
    }

    private void run() throws IOException {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            obey(Arrays.asList(line.split(" ")));
        }
    }

    public static void main(String[] words) throws IOException {
        new Main().run();
        Runtime.getRuntime().halt(0);
    }
}
