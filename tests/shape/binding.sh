#!/bin/sh
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# binding.sh SOURCE [OBJECT...]: the C++ headers call each public function of the C headers, and so
# do the laws of tests/cpp, by the objects that were made of them. A member that no law calls is in
# no object.

. "$(dirname "$0")/tally.sh"
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
headers=$1/include/hirelock
shift

# Functions that C++ does better without would stand here, each with its reason. There are none.
without_a_member=

awk -f "$here/../../docs/pieces.awk" -f "$here/api.awk" "$headers"/*.h | cut -f 1 | sort -u >"$work/functions"
[ -s "$work/functions" ] || fail "no HL_API function in $headers"
sed '/^ *\/\*/d; /^ *\* /d' "$headers"/*.hpp >"$work/binding" # without the lines of comments

has_member() { # FUNCTION: a call, or an argument of a template
    case " $without_a_member " in *" $1 "*) return 0 ;; esac
    grep -qE "(^|[^a-z0-9_])$1[(,>]" "$work/binding"
}

while read -r name; do
    if has_member "$name"; then pass; else fail "$name has no counterpart in $headers/*.hpp"; fi
done <"$work/functions"

if [ $# -eq 0 ] || [ ! -e "$1" ]; then
    echo "skipped: the laws of tests/cpp are not built"
    finish
fi
nm -u "$@" | awk 'NF == 2 { print $2 }' | sort -u >"$work/called"
while read -r name; do
    if grep -qx "$name" "$work/called"; then pass; else fail "$name is called by no law of tests/cpp"; fi
done <"$work/functions"
finish
