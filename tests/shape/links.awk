# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Reads pages of Markdown. Prints "anchor PAGE NAME" for each heading, as GitHub names it, and
# "link PAGE LINE TARGET" for each link that is not to another site.

function anchor(text) {
    text = tolower(text)
    gsub(/[^a-z0-9_ -]/, "", text)
    gsub(/ /, "-", text)
    return text
}

FNR == 1 { inside = 0 }

/^ *```/ { inside = !inside; next }

inside { next }

/^#+ / { text = $0; sub(/^#+ /, "", text); print "anchor", FILENAME, anchor(text) }

{
    line = $0
    gsub(/`[^`]*`/, "", line)
    while (match(line, /\]\([^)]*\)/)) {
        target = substr(line, RSTART + 2, RLENGTH - 3)
        line = substr(line, RSTART + RLENGTH)
        if (target !~ /^[a-z]+:/)
            print "link", FILENAME, FNR, target
    }
}
