#!/bin/sh
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# documented.sh SOURCE: the comment above each public function says Threads: and Returns:, and
# every error code that a public header names exists.

. "$(dirname "$0")/tally.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$1/include/hirelock" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

awk -f "$here/../../docs/pieces.awk" -f "$here/api.awk" ./*.h >"$work/functions"
while IFS='	' read -r name comment; do
    for word in Threads: Returns:; do
        case $comment in
        *"$word"*) pass ;;
        *) fail "$name: its comment has no $word" ;;
        esac
    done
done <"$work/functions"
[ -s "$work/functions" ] || fail "no HL_API function in $1/include/hirelock"

# A code has no further underscore; HL_EVENT_... and HL_ERROR_... are other things.
sed -n 's/^ *X(\(E[A-Z0-9]*\),.*/HL_\1/p' error.h | sort -u >"$work/codes"
[ -s "$work/codes" ] || fail "error.h lists no code"
awk -f ../../docs/doxygen.awk error.h | sed -n 's/^\(HL_E[A-Z0-9]*\) = -[0-9]*,.*/\1/p' |
    sort -u >"$work/shown"
if cmp -s "$work/codes" "$work/shown"; then pass; else fail "the reference does not list the codes"; fi
grep -Eoh '\bHL_[A-Za-z0-9_]+' ./*.h | grep -E '^HL_E[A-Z0-9]+$' | sort -u >"$work/named"
while read -r code; do
    if grep -qx "$code" "$work/codes"; then
        pass
    else
        fail "$code is named in a header, not listed in error.h"
    fi
done <"$work/named"
finish
