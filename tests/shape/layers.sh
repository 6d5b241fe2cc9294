#!/bin/sh
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# layers.sh SOURCE: no file of src/ includes upward, neither from floor to floor nor from room to
# room of its floor (the file `order` has both); hiredis, libevent and OpenSSL stay inside redis/.

includes_up=0 # between the rooms of a floor

. "$(dirname "$0")/tally.sh"
order=$(cd "$(dirname "$0")" && pwd)/order
cd "$1" || exit 1
up=0

# The lines of the floors from the bottom, for floor() and room() to count.
floors=$(sed '/^#/d; s/ .*//' "$order" | tac)

# place NAME IN: which word of the list is it, from 1? 0: none.
place() {
    n=0
    for word in $2; do
        n=$((n + 1))
        [ "$word" = "$1" ] && echo $n && return
    done
    echo 0
}

floor() { # FILE
    place "${1%%/*}" "$floors"
}

room() { # FILE: of its floor; 0 if it stands in no folder of it
    inside=${1#*/}
    case $inside in
    */*) place "${inside%%/*}" "$(sed -n "s/^${1%%/*} //p" "$order" | tr ' ' '\n' | tac)" ;;
    *) echo 0 ;;
    esac
}

# quoted FILE FLOOR ROOM INCLUDED: an include of our own.
quoted() {
    case $4 in
    *../*) fail "$1 includes \"$4\": rooted at src/, without .." && return ;;
    esac
    theirs=$(floor "$4")
    if [ "$theirs" -eq 0 ]; then
        fail "$1 includes \"$4\", which is on no floor"
    elif [ "$theirs" -gt "$2" ]; then
        fail "$1 includes \"$4\", which is on a floor above it"
    elif [ "$theirs" -eq "$2" ] && [ "$3" -gt 0 ] && [ "$(room "$4")" -gt "$3" ]; then
        up=$((up + 1))
        echo "up: $1 includes \"$4\""
    else
        pass
    fi
}

# angled FILE INCLUDED: a system's or a library's.
angled() {
    case $1:$2 in
    src/redis/*) pass ;;
    src/cli/exporter/pages.c:event2/*) pass ;; # its HTTP server
    *:hiredis* | *:event2/* | *:event.h | *:ev*.h | *:openssl/*) fail "$1 includes <$2> outside src/redis" ;;
    src/cli/*) pass ;;
    *:*..*) fail "$1 includes <$2>" ;;
    *) pass ;;
    esac
}

includes() { # FILE: lines of "KIND TEXT"
    sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/quoted \1/p
        s/^[[:space:]]*#[[:space:]]*include[[:space:]]*<\([^>]*\)>.*/angled \1/p' "$1"
}

list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT
for file in $(find src include -name '*.[ch]'); do
    folder=${file#src/}
    mine=$(floor "$folder")
    inside=$(room "$folder")
    case $file in
    include/*) mine=-1 ;; # public headers reach each other as <hirelock/...>
    src/cli/*) mine=-1 ;; # and so does the command-line tool
    *)
        [ "$mine" -gt 0 ] || fail "$file is on no floor"
        case $inside:$folder in
        0:*/*/*) fail "$file is in no room of its floor: a line of tests/shape/order" ;;
        esac
        ;;
    esac
    includes "$file" >"$list"
    while read -r kind text; do
        case $kind:$file in
        quoted:src/cli/* | quoted:include/*)
            case $text in
            cli/* | base/suggest.h | base/exposition.h) pass ;; # the command is built with these, too
            *) fail "$file includes \"$text\": public headers only" ;;
            esac
            ;;
        quoted:*) quoted "$file" "$mine" "$inside" "$text" ;;
        *) angled "$file" "$text" ;;
        esac
    done <"$list"
done
[ "$up" -le "$includes_up" ] && pass || fail "$up includes run up between rooms, not $includes_up"
finish
