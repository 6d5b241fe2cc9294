# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Reads the file `order` and then `nm -A` of the library's objects, and prints
#   circle COUNT FILE...           files that use each other in a circle
#   floor FILE SYMBOL FILE         the first uses what the second defines, on a floor above it
#   room FILE SYMBOL FILE          the same in a room above it
#   sum FLOOR FILES ARROWS UP      an arrow: a file uses what another one of its floor defines
#
# -v skip: what stands before a file's name in the name of its object, as a regular expression.

function floor_of(file) {
    sub(/\/.*/, "", file)
    return file
}

function room_of(file,    word) { # empty if it stands in none
    return split(file, word, "/") > 2 ? word[1] "/" word[2] : ""
}

FILENAME ~ /order$/ && !/^#/ && NF {
    height[$1] = 1000 - NR
    for (i = 2; i <= NF; i++) height[$1 "/" $i] = 1000 - i
    next
}
FILENAME ~ /order$/ { next }

{
    file = $1
    sub(/:.*/, "", file)
    sub(skip, "", file)
    sub(/^generated\//, "", file)
    sub(/\.o$/, "", file)
    files[file]
    kind = $(NF - 1)
    if (kind == "U") uses[file, $NF]
    else defined_in[$NF] = file
}

# Tarjan: the files left on the stack above a file that reaches no lower one are its circle.
function visit(file,    i, n, next_of, count, text) {
    index_of[file] = low[file] = ++visited
    stack[++top] = file
    is_on[file] = 1
    n = split(used[file], next_of, " ")
    for (i = 1; i <= n; i++) {
        if (!(next_of[i] in index_of)) visit(next_of[i])
        if (is_on[next_of[i]] && low[next_of[i]] < low[file]) low[file] = low[next_of[i]]
    }
    if (low[file] != index_of[file]) return
    do {
        text = text " " stack[top]
        is_on[stack[top]] = 0
        count++
    } while (stack[top--] != file)
    if (count > 1) print "circle", count text
}

END {
    for (use in uses) {
        split(use, part, SUBSEP)
        from = part[1]
        if (!(part[2] in defined_in)) continue
        to = defined_in[part[2]]
        if (to == from) continue
        is_new = !((from, to) in arrow)
        arrow[from, to]
        if (is_new) used[from] = used[from] " " to
        if (height[floor_of(to)] > height[floor_of(from)]) print "floor", from, part[2], to
        if (floor_of(to) != floor_of(from)) continue
        is_up = room_of(to) in height && room_of(from) in height &&
            height[room_of(to)] > height[room_of(from)]
        if (is_up) print "room", from, part[2], to
        if (is_new) {
            arrows[floor_of(from)]++
            up[floor_of(from)] += is_up
        }
    }
    for (file in files) {
        count[floor_of(file)]++
        if (!(file in index_of)) visit(file)
    }
    for (floor in count) print "sum", floor, count[floor], arrows[floor] + 0, up[floor] + 0
}
