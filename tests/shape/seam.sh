#!/bin/sh
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# seam.sh SOURCE OBJECT...: what makes two runs differ is used in the files that a table of
# src/README.md names ("What a simulator would replace"), and nowhere else. A symbol that the library
# does not define stands in that table, or is known here to be the same in each run.

# shellcheck disable=SC2254 # what a case compares with here is a pattern

. "$(dirname "$0")/tally.sh"
set -f
source=$1
shift

# Memory, text, numbers, the parser of answers; and what happens once for each process or thread.
harmless='mem* str* *printf __isoc* malloc calloc realloc free mmap64 munmap madvise abort stderr stdout fputs fwrite
    tolower toupper __ctype_* explicit_bzero __explicit_bzero_chk __*_chk qsort bsearch
    __errno_location __stack_chk_fail __tls_get_addr _GLOBAL_OFFSET_TABLE_ sigfillset
    htons redisReader* freeaddrinfo gai_strerror
    pthread_once pthread_key_* pthread_setspecific pthread_atfork pthread_setcancelstate
    __asan_* __tsan_* __ubsan_* __sanitizer_* __gcov_* __cyg_profile_*'

# "SYMBOL FILE..." for each symbol of a row.
rows=$(awk -F '|' '/^## /{inside = /What a simulator would replace/}
    inside && $2 ~ /`/ {
        symbols = $2; files = $3
        gsub(/\([^)]*\)/, "", symbols); gsub(/`/, "", symbols); gsub(/`/, "", files)
        n = split(symbols, symbol, " ")
        for (i = 1; i <= n; i++) print symbol[i], files
    }' "$source/src/README.md")
[ -n "$rows" ] || fail "no table in src/README.md"

is_harmless() { # SYMBOL
    for pattern in $harmless; do
        case $1 in $pattern) return 0 ;; esac
    done
    return 1
}

# The files that may use it; nothing when it stands in no row.
files_of() { # SYMBOL
    echo "$rows" | while read -r pattern files; do
        case $1 in $pattern) echo "$files" ;; esac
    done
}

judge() { # FILE SYMBOL
    allowed=$(files_of "$2")
    case " $allowed " in
    "  ") fail "$1 uses $2, which stands in no row of src/README.md" ;;
    *" $1 "*) pass ;;
    *) fail "$1 uses $2: only $allowed may" ;;
    esac
}

found=$(mktemp) || exit 1
trap 'rm -f "$found"' EXIT
[ $# -gt 0 ] || fail "no objects"
nm -A -u "$@" | sed -n 's/^.*hl_objects\.dir\/\(.*\)\.o: *[Uw] \([^@]*\).*/\1 \2/p' |
    grep -v ' hli\{0,1\}_' >"$found"
while read -r file symbol; do
    is_harmless "$symbol" || judge "$file" "$symbol"
done <"$found"

# A row whose file does not use the symbol any more is out of date.
echo "$rows" | while read -r pattern files; do
    for file in $files; do
        grep "^$file " "$found" | while read -r _ symbol; do
            case $symbol in $pattern) echo used && break ;; esac
        done | grep -q used || echo "$file $pattern"
    done
done >"$found.stale"
while read -r file pattern; do
    fail "$file does not use $pattern any more"
done <"$found.stale"
rm -f "$found.stale"
finish
