#!/bin/sh
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# man.sh SOURCE [PROGRAM]: the manual pages are made, mandoc and groff find nothing wrong with them,
# each function, type and subcommand has its page, no page is of a subcommand that is not there,
# and each page that is named exists. Needs mandoc.

. "$(dirname "$0")/tally.sh"
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$1" && pwd) || exit 1
program=${2:-}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

is_there() { # PAGE SECTION WHY
    if [ -s "$work/man/man$2/$1.$2" ]; then pass; else fail "no $1($2): $3"; fi
}

if ! command -v mandoc >/dev/null; then
    fail "mandoc is not here: script/bootstrap test"
    finish
fi
if sh "$source/docs/man/build.sh" "$source" "$work/man" ${program:+"$program"} >"$work/log" 2>&1
then pass; else fail "docs/man/build.sh: $(cat "$work/log")"; fi

# Which other pages this machine has is not asked; those of ours are looked for below.
for page in $(grep -L '^\.so ' "$work"/man/man*/*); do
    mandoc -T lint "$page" 2>/dev/null | grep -v 'referenced manual not found' >"$work/log"
    if [ -s "$work/log" ]; then fail "$(cat "$work/log")"; else pass; fi
    if command -v groff >/dev/null; then
        # "break" is a line that a long name leaves too short to be adjusted.
        groff -ww -W break -mandoc -Tascii -z "$page" 2>"$work/log"
        if [ -s "$work/log" ]; then fail "groff: $page: $(cat "$work/log")"; else pass; fi
    fi
    sed -n 's/^\.\(It \)\{0,1\}Xr \(hirelock[a-z-]*\|hl_[a-z_]*\) \([137]\).*/\2 \3/p' "$page" \
        >"$work/named"
    while read -r name section; do
        if [ "$section" = 1 ] && [ -z "$program" ]; then continue; fi
        is_there "$name" "$section" "named by $(basename "$page")"
    done <"$work/named"
done
for link in $(grep -l '^\.so ' "$work"/man/man*/*); do
    to=$(sed -n 's/^\.so //p' "$link")
    if [ -s "$work/man/$to" ]; then pass; else fail "$link leads to $to"; fi
done

awk -f "$source/docs/pieces.awk" -f "$here/api.awk" "$source"/include/hirelock/*.h | cut -f 1 \
    >"$work/functions"
grep -oh '^typedef struct hl_[a-z_]*\|^typedef enum hl_[a-z_]*\|(\*hl_[a-z_]*' \
    "$source"/include/hirelock/*.h | grep -o 'hl_[a-z_]*' >"$work/types"
if [ ! -s "$work/functions" ] || [ ! -s "$work/types" ]; then fail "no declaration in include"; fi
sort -u "$work/functions" "$work/types" >"$work/names"
while read -r name; do
    is_there "$name" 3 "a public header declares it"
    page=$work/man/man3/$name.3
    page=$work/man/$(sed -n 's/^\.so //p; q' "$page" | grep . || echo "man3/$name.3")
    if ! grep -q "$name" "$page"; then fail "$page does not explain $name"; fi
done <"$work/names"
while read -r name; do # its prototype and its comment are in the page
    page=$(grep -lx "\.Ss $name" "$work"/man/man3/*.3)
    if [ -n "$page" ] && grep -q "^\.Fo $name\$" "$page"; then pass; else fail "no page has $name"; fi
done <"$work/functions"

if [ -n "$program" ]; then
    "$program" help | awk -f "$source/docs/man/commands.awk" | cut -d ' ' -f 1 >"$work/commands"
    [ -s "$work/commands" ] || fail "hirelock help lists no command"
    while read -r name; do
        is_there "hirelock-$name" 1 "hirelock has the command"
        if [ -s "$source/docs/man/hirelock-$name.1" ]; then pass; else
            fail "docs/man/hirelock-$name.1 is missing: hirelock has the command"
            continue
        fi
        for section in DESCRIPTION OPTIONS 'EXIT STATUS' EXAMPLES; do
            if grep -qx "\.Sh $section" "$work/man/man1/hirelock-$name.1"; then pass; else
                fail "hirelock-$name(1) has no section $section"
            fi
        done
    done <"$work/commands"
    for page in "$source"/docs/man/hirelock-*.1; do
        [ -e "$page" ] || continue
        name=$(basename "$page" .1)
        if grep -qx "${name#hirelock-}" "$work/commands"; then pass; else
            fail "docs/man/$name.1: hirelock has no such command"
        fi
    done
fi
finish
