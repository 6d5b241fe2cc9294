#!/bin/sh
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# mutants.sh SOURCE: the text that each planted fault replaces stands once in its file, so that
# none is lost when the file is changed; and a fault whose text does not is reported.

. "$(dirname "$0")/tally.sh"
cd "$1" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

if script/mutants --check >"$work/report"; then pass; else fail "$(cat "$work/report")"; fi

mkdir -p "$work/script" "$work/tests/mutants" "$work/src"
cp script/mutants "$work/script"
echo 'int x;' >"$work/src/x.c"
plant() {
    printf 'title: t\nkilled by: p s/t\nfile: src/x.c\n--- from\n%s\n--- to\nint z;\n' "$1" \
        >"$work/tests/mutants/m.mutant"
}
plant 'int x;'
if "$work/script/mutants" --check >"$work/report"; then pass; else fail "a fault that applies"; fi
plant 'int y;'
if "$work/script/mutants" --check >"$work/report"; then fail "a fault without its text"; else pass; fi
grep -q '0 times in src/x.c' "$work/report" && pass || fail "$(cat "$work/report")"
finish
