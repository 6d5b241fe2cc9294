# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Reads pages of Markdown and prints a line "ok WHERE" or "bad WHERE: why" for each block of C or
# C++ in them, each block of docs/install.md, and each other one that a line <!-- excerpt of FILE -->
# stands above. Such a block has that line, and lines of that file, one after the other, all moved to
# the left by the same number of spaces or by none. The files of docs/install.md are tests.

function indent(line) {
    match(line, /^ */)
    return RLENGTH
}

function load(path, n, line) {
    while ((getline line < path) > 0)
        source[++n] = line
    close(path)
    return n
}

function same(at, shift, i) {
    for (i = 1; i <= lines; i++)
        if (source[at + i - 1] != (block[i] == "" ? "" : sprintf("%" shift "s", "") block[i]))
            return 0
    return 1
}

function judge(n, at) {
    if (path == "") {
        print "bad " where ": lines of no file; <!-- excerpt of FILE --> goes before it"
        return
    }
    n = load(path)
    for (at = 1; lines > 0 && at + lines - 1 <= n; at++)
        if (indent(source[at]) >= indent(block[1]) && same(at, indent(source[at]) - indent(block[1]))) {
            print "ok " where
            return
        }
    print "bad " where ": not an excerpt of " path
}

FNR == 1 { inside = 0; path = "" }

inside && /^```/ {
    if (inside == "c" || inside == "cpp" || path != "" || FILENAME == "docs/install.md")
        judge()
    inside = 0
    path = ""
    next
}

inside { block[++lines] = $0; next }

/^```/ {
    inside = substr($0, 4) == "" ? "text" : substr($0, 4)
    where = FILENAME ":" FNR
    lines = 0
    next
}

/^<!-- excerpt of [^ ]* -->$/ { path = $4; next }

/[^ ]/ { path = "" }
