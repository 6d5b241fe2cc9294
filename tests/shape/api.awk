# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Reads public headers and prints one line per HL_API function: its name, a tab, and the text of
# the comment right before its declaration, empty when there is none.

function remember(text) {
    comment = fresh ? text : comment " " text
    fresh = 0
}

function declare(text, name) {
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

FNR == 1 { inside = 0; fresh = 1; comment = ""; declaration = "" }

# The rest of a line is taken apart piece by piece: comment, code, comment ...
{
    line = $0
    if (!inside && (line ~ /^[ \t]*#/ || directive)) {
        directive = (line ~ /\\$/)
        comment = ""
        next
    }
    while (line != "") {
        if (inside) {
            end = index(line, "*/")
            remember(end ? substr(line, 1, end - 1) : line)
            line = end ? substr(line, end + 2) : ""
            inside = !end
        } else {
            start = index(line, "/*")
            code = start ? substr(line, 1, start - 1) : line
            if (code ~ /[^ \t]/)
                declare(code)
            line = start ? substr(line, start + 2) : ""
            inside = start > 0
            if (start)
                fresh = 1
        }
    }
}
