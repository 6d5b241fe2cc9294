#!/bin/sh
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# build.sh SOURCE OUTPUT [PROGRAM]: writes the manual pages into OUTPUT/man1, man3 and man7.
#
#   hl_NAME(3)         from the public header NAME.h, with a link for each name that it declares
#   hirelock(3)        from docs/man/hirelock.3 and the list of those
#   hirelock(7)        from docs/man/hirelock.7
#   hirelock(1)        from docs/man/hirelock.1, and the subcommands that PROGRAM lists
#   hirelock-NAME(1)   from docs/man/hirelock-NAME.1, and what PROGRAM NAME --help says
#
# A subcommand that has no file in docs/man has a page all the same, of its options alone;
# tests/shape/man.sh asks for the file.
# Without PROGRAM, the command, there is no section 1. SOURCE_DATE_EPOCH sets the pages' date.
set -eu

[ $# -ge 2 ] || { echo "usage: $0 SOURCE OUTPUT [PROGRAM]" >&2; exit 2; }
source=$1
output=$2
program=${3:-}
here=$source/docs/man
export LC_ALL=C

seconds=${SOURCE_DATE_EPOCH:-$(date +%s)}
date=$(date -u -d "@$seconds" '+%B %-d, %Y')
version=$(sed -n 's/^#define HL_VERSION_[A-Z]* \([0-9]*\)$/\1/p' \
    "$source/include/hirelock/version.h" | paste -s -d . -)
headers=$(cd "$source/include/hirelock" && for header in *.h; do echo "${header%.h}"; done |
    grep -v '^hirelock$')

heading() { # PAGE SECTION
    printf '.Dd %s\n.Dt %s %s\n.Os\n' "$date" "$(echo "$1" | tr '[:lower:]' '[:upper:]')" "$2"
}

from_header() { # HEADER ASSIGNMENT...: what header.awk makes of it
    header=$1
    shift
    awk -v page="hl_$header" -v header="$header.h" -v date="$date" -v version="$version" "$@" \
        -f "$source/docs/pieces.awk" -f "$here/mdoc.awk" -f "$here/header.awk" \
        "$source/include/hirelock/$header.h"
}

section_3() {
    # shellcheck disable=SC2086 # words
    others=$(printf 'hl_%s ' $headers)
    : >"$output/list"
    for header in $headers; do
        from_header "$header" -v others="$others" >"$output/man3/hl_$header.3"
        for name in $(from_header "$header" -v names=1); do
            [ "$name" = "hl_$header" ] || echo ".so man3/hl_$header.3" >"$output/man3/$name.3"
        done
        printf '.It Xr hl_%s 3\n%s\n' "$header" "$(from_header "$header" -v summary=1)" \
            >>"$output/list"
    done
    heading hirelock 3 | cat - "$here/hirelock.3" |
        awk -v list="$output/list" -f "$here/insert.awk" >"$output/man3/hirelock.3"
}

section_7() {
    heading hirelock 7 | cat - "$here/hirelock.7" >"$output/man7/hirelock.7"
}

# argp breaks no line that is as long as this allows (glibc manual, "Argp User Customization").
help_of() { # [NAME]
    ARGP_HELP_FMT=rmargin=10000,opt-doc-col=60 "$program" help "$@"
}

section_1() {
    help_of >"$output/help"
    awk -f "$here/commands.awk" "$output/help" >"$output/commands"
    awk '{ print ".It Xr hirelock-" $1 " 1"; $1 = ""; print substr($0, 2) }' "$output/commands" \
        >"$output/list"
    heading hirelock 1 | cat - "$here/hirelock.1" |
        awk -v list="$output/list" -v environment="$here/environment" -f "$here/insert.awk" \
            >"$output/man1/hirelock.1"
    while read -r name summary; do
        help_of "$name" >"$output/help"
        { heading "hirelock-$name" 1
          awk -v name="$name" -v summary="$summary" -v environment="$here/environment" \
            -v hand="$here/hirelock-$name.1" -f "$here/mdoc.awk" -f "$here/command.awk" \
            "$output/help"; } >"$output/man1/hirelock-$name.1"
    done <"$output/commands"
}

rm -rf "$output"
mkdir -p "$output/man1" "$output/man3" "$output/man7"
section_3
section_7
[ -z "$program" ] || section_1
rm -f "$output/list" "$output/help" "$output/commands"
