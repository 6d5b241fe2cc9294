// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
package hirelock.interop;

import java.util.Arrays;
import java.util.List;

/** What stands behind an action: the names of what it is done to, and numbers or ids. */
final class Words {
    private final List<String> words;

    Words(List<String> words) {
        this.words = words;
    }

    private String get(int index) {
        if (index >= words.size()) {
            throw new IllegalArgumentException("too few words: " + words);
        }
        return words.get(index);
    }

    /** The first word. */
    String name() {
        return get(0);
    }

    /** The first word as several names. */
    List<String> names() {
        return Arrays.asList(get(0).split(","));
    }

    /** How many words stand behind the name. */
    int count() {
        return words.size() - 1;
    }

    String text(int index) {
        return get(1 + index);
    }

    List<String> texts(int index) {
        return Arrays.asList(text(index).split(","));
    }

    long number(int index) {
        return Long.parseLong(text(index));
    }

    long number(int index, long otherwise) {
        return index < count() ? number(index) : otherwise;
    }
}
