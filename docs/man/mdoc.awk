# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Functions that print plain text in the language of the manual pages, mdoc(7). Named before the
# awk program that calls them.

# Text as it stands: no character of it is a request or an escape.
function plain(text) {
    gsub(/\\/, "\\e", text)
    gsub(/"/, "\\(dq", text)
    gsub(/--/, "\\-\\-", text) # no dash between two thoughts
    if (text ~ /^[.']/)
        text = "\\&" text
    return text
}

# Wraps what matches: names of the API, and what a comment marks by `...` or **...**.
function bold(text, pattern, done, word) {
    while (match(text, pattern)) {
        word = substr(text, RSTART, RLENGTH)
        done = done substr(text, 1, RSTART - 1) "\\fB" word "\\fR"
        text = substr(text, RSTART + RLENGTH)
    }
    return done text
}

function marked(text) {
    text = plain(text)
    gsub(/\*\*|`/, "", text)
    text = bold(text, "(hl|HL)_[A-Za-z0-9_]+(\\(\\))?|[a-z][a-z0-9_]*\\(\\)")
    return text
}

# Prints text on lines of at most 78 characters; none begins with a character of control.
function folded(text, word, n, i, line) {
    n = split(text, word, " ")
    for (i = 1; i <= n; i++) {
        if (line != "" && length(line) + length(word[i]) > 77) {
            print line
            line = ""
        }
        if (word[i] ~ /[_\/]/)
            word[i] = "\\%" word[i] # never hyphenated
        if (line == "" && word[i] ~ /^[.']/)
            word[i] = "\\&" word[i]
        line = line == "" ? word[i] : line " " word[i]
    }
    print line
}

# A sentence begins a line, as roff wants it, so that it can set the space before.
function sentences(text, at) {
    while (match(text, /[^ (][^ (][.?!]\)? ./)) {
        at = RSTART + RLENGTH - 2
        folded(marked(substr(text, 1, at - 1)))
        text = substr(text, at + 1)
    }
    folded(marked(text))
}

function paragraph(text, n) {
    if (text == "")
        return
    if (printed++)
        print ".Pp"
    if (match(text, /^(Threads|Returns): /)) {
        print ".Sy " substr(text, 1, RLENGTH - 2) " :"
        text = substr(text, RLENGTH + 1)
    }
    sentences(text)
}

# Lines, and empty lines between the paragraphs. "Threads:" and "Returns:" begin paragraphs.
function mdoc(text, line, n, i, whole) {
    printed = 0
    n = split(text, line, "\n")
    for (i = 1; i <= n; i++) {
        if (line[i] == "" || line[i] ~ /^(Threads|Returns): /) {
            paragraph(whole)
            whole = line[i]
        } else
            whole = whole == "" ? line[i] : whole " " line[i]
    }
    paragraph(whole)
}
