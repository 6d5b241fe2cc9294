#!/bin/sh
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# symbols.sh SOURCE LIBRARY: the shared library exports the functions that src/hirelock.map names
# and that the public headers declare, and no others.

. "$(dirname "$0")/tally.sh"
set -f # a wildcard in the map is a symbol that nothing declares
here=$(cd "$(dirname "$0")" && pwd)
lists=$(mktemp -d) || exit 1
trap 'rm -rf "$lists"' EXIT

nm -D --defined-only "$2" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
    LC_ALL=C sort -u >"$lists/library"
sed -n '/global:/,/local:/s/^[[:space:]]*\([^[:space:];]*\);.*/\1/p' "$1/src/hirelock.map" |
    LC_ALL=C sort -u >"$lists/map"
find "$1/include/hirelock" -name '*.h' -exec awk -f "$here/../../docs/pieces.awk" -f "$here/api.awk" {} + |
    cut -f 1 | LC_ALL=C sort -u >"$lists/headers"

same() { # A B
    LC_ALL=C comm -12 "$lists/$1" "$lists/$2" >"$lists/both"
    passed=$((passed + $(wc -l <"$lists/both")))
    for symbol in $(LC_ALL=C comm -23 "$lists/$1" "$lists/$2"); do
        fail "$symbol is in the $1, not in the $2"
    done
    for symbol in $(LC_ALL=C comm -13 "$lists/$1" "$lists/$2"); do
        fail "$symbol is in the $2, not in the $1"
    done
}

[ -s "$lists/headers" ] || fail "no HL_API function in $1/include/hirelock"
same headers map
same map library
finish
