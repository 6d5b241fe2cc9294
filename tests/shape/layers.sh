#!/bin/sh
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# layers.sh SOURCE: no file of src/ includes upward. The floors are, from the top,
# client, sync, lease, redis, base; hiredis and libevent stay inside redis/.

. "$(dirname "$0")/tally.sh"
cd "$1" || exit 1

floor() {
    case $1 in
    client) echo 5 ;;
    sync) echo 4 ;;
    lease) echo 3 ;;
    redis) echo 2 ;;
    base) echo 1 ;;
    *) echo 0 ;;
    esac
}

# quoted FILE FLOOR INCLUDED: an include of our own.
quoted() {
    case $3 in
    *../*) fail "$1 includes \"$3\": rooted at src/, without .." && return ;;
    esac
    theirs=$(floor "${3%%/*}")
    if [ "$theirs" -eq 0 ]; then
        fail "$1 includes \"$3\", which is on no floor"
    elif [ "$theirs" -gt "$2" ]; then
        fail "$1 includes \"$3\", which is above it"
    else
        pass
    fi
}

# angled FILE INCLUDED: a system's or a library's.
angled() {
    case $1:$2 in
    src/redis/*) pass ;;
    *:hiredis* | *:event2/* | *:event.h | *:ev*.h) fail "$1 includes <$2> outside src/redis" ;;
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
    mine=$(floor "${folder%%/*}")
    case $file in
    include/*) mine=-1 ;; # public headers reach each other as <hirelock/...>
    src/cli/*) mine=-1 ;; # and so does the command-line tool
    *) [ "$mine" -gt 0 ] || fail "$file is on no floor" ;;
    esac
    includes "$file" >"$list"
    while read -r kind text; do
        case $kind:$file in
        quoted:src/cli/* | quoted:include/*)
            case $text in
            cli/*) pass ;;
            *) fail "$file includes \"$text\": public headers only" ;;
            esac
            ;;
        quoted:*) quoted "$file" "$mine" "$text" ;;
        *) angled "$file" "$text" ;;
        esac
    done <"$list"
done
finish
