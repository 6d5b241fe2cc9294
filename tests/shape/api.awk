# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Reads public headers behind docs/pieces.awk and prints one line per HL_API function: its name, a
# tab, and the text of the comment right before its declaration, empty when there is none.

function comment_begins(behind) {
    comment = ""
}

function comment_line(text) {
    comment = comment == "" ? text : comment " " text
}

function directive(line) {
    comment = ""
}

function code(text, name) {
    declaration = declaration " " text
    if (declaration !~ /[;{]/)
        return
    if (declaration ~ /^[ \t]*HL_API / && match(declaration, /hl_[a-z0-9_]+[ ]*\(/)) {
        name = substr(declaration, RSTART, RLENGTH - 1)
        sub(/ +$/, "", name)
        printf "%s\t%s\n", name, comment
    }
    declaration = ""
    comment = ""
}

FNR == 1 { comment = ""; declaration = "" }
