# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Takes a page of Markdown apart, so that tests/examples/page can run it: -v work=DIR.
#
#   DIR/script    the blocks of sh, in their order; each prints into DIR/printed.N
#   DIR/wanted.N  the block of text below block N, which is what that has to print
#   DIR/NAME.c    the blocks of C, by the name of the file of which they are an excerpt
#
# A block of sh below the line <!-- not run --> is left out. It prints the number of blocks of sh.

function close_block() {
    if (kind == "sh" && !is_left_out)
        is_last_sh = 1
    else if (kind != "")
        is_last_sh = 0
    kind = ""
    target = ""
    is_left_out = 0
}

BEGIN { printf "" >(work "/script") }

/^```/ && kind != "" { close_block(); next }

kind == "sh" { if (!is_left_out) print >(work "/script"); next }
kind == "text" { if (is_last_sh) print >(work "/wanted." blocks); next }
kind == "c" { if (target != "") print >(work "/" target); next }
kind != "" { next }

/^<!-- excerpt of [^ ]* -->$/ {
    target = $4
    sub(/.*\//, "", target)
    next
}

/^<!-- not run -->$/ { is_left_out = 1; next }

/^```/ {
    kind = substr($0, 4) == "" ? "other" : substr($0, 4)
    if (kind == "sh" && !is_left_out) {
        blocks++
        print "exec >'" work "/printed." blocks "'" >(work "/script")
    }
    next
}

END { print blocks + 0 }
