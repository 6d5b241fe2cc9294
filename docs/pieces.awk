# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Takes public headers apart, for the awk program that is named behind it: -f pieces.awk -f OTHER.
# That one has these functions, which are called in the order of the text:
#
#   directive(line)          a line of the preprocessor, and each that continues it
#   code(text)               C, without comments; at most a line
#   comment_begins(behind)   behind: there is C before the comment on its line
#   comment_line(text)       each line of a comment

FNR == 1 { inside = 0; directive_goes_on = 0 }

# The rest of a line is taken apart piece by piece: comment, code, comment ...
{
    line = $0
    behind = 0
    if (!inside && (line ~ /^[ \t]*#/ || directive_goes_on)) {
        directive_goes_on = (line ~ /\\$/)
        directive(line)
        next
    }
    while (line != "" || inside) {
        if (inside) {
            end = index(line, "*/")
            comment_line(end ? substr(line, 1, end - 1) : line)
            line = end ? substr(line, end + 2) : ""
            inside = !end
            if (inside)
                break
        } else {
            start = index(line, "/*")
            piece = start ? substr(line, 1, start - 1) : line
            if (piece ~ /[^ \t]/) {
                code(piece)
                behind = 1
            }
            line = start ? substr(line, start + 2) : ""
            inside = start > 0
            if (inside)
                comment_begins(behind)
        }
    }
}
