#!/bin/sh
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# headers.sh SOURCE: every public header compiles alone and twice, in C11, C++11 and C++20,
# without a warning, with each compiler that is here. The headers of the binding (.hpp) do so in
# C++17, and all together in C++20 and C++23.

. "$(dirname "$0")/tally.sh"
cd "$1/include" || exit 1
flags='-Wall -Wextra -pedantic -Wconversion -Werror -fsyntax-only -I .'
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

alone() { # HEADER COMPILER LANGUAGE STANDARD [FLAGS]
    if printf '#include <%s>\n#include <%s>\n' "$1" "$1" |
        "$2" -x "$3" "-std=$4" $flags $5 - >"$log" 2>&1; then
        pass
    else
        fail "$1 alone with $2 -std=$4"
        cat "$log"
    fi
}

here() {
    command -v "$1" >"$log" && return
    echo "skipped: no $1"
    return 1
}

for header in hirelock/*.h; do
    [ -f "$header" ] || fail "no header in $1/include/hirelock"
    [ -f "$header" ] || finish
done
for compiler in gcc clang; do
    here "$compiler" || continue
    for header in hirelock/*.h; do alone "$header" "$compiler" c c11; done
done
binding_flags='-Wpedantic -Wshadow -Weffc++ -Wnon-virtual-dtor'
for compiler in g++ clang++; do
    here "$compiler" || continue
    for header in hirelock/*.hpp; do alone "$header" "$compiler" c++ c++17 "$binding_flags"; done
    for standard in c++20 c++2b; do
        alone hirelock/hirelock.hpp "$compiler" c++ $standard "$binding_flags"
    done
    for header in hirelock/*.h; do
        alone "$header" "$compiler" c++ c++11
        alone "$header" "$compiler" c++ c++20
    done
done
finish
