#!/bin/sh
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# docs.sh SOURCE: blocks of C and C++ in the pages are excerpts of the files that they name,
# docs/errors.md has the codes of error.h with their texts and no others, and no link inside the
# project is dead.

. "$(dirname "$0")/tally.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$1" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

find . -name '*.md' ! -path './build*' ! -path './.git/*' | sed 's,^\./,,' | sort >"$work/pages"
[ -s "$work/pages" ] || fail "no page in $1"

xargs awk -f "$here/excerpts.awk" <"$work/pages" >"$work/excerpts"
while read -r verdict text; do
    if [ "$verdict" = ok ]; then pass; else fail "$text"; fi
done <"$work/excerpts"
grep -q '^ok README.md:' "$work/excerpts" || fail "README.md shows no program"

# Lines of code, value, text and class, as the header and as the page have them.
sed -n 's/^ *X(\(E[A-Z0-9]*\), \(-[0-9]*\), "\([^"]*\)", \([A-Z]*\)).*/`HL_\1` | \2 | \3 | \4/p' \
    include/hirelock/error.h | sort >"$work/header"
sed -n 's/^| \(`HL_E[A-Z0-9]*` | -[0-9]* | [^|]* | \)\([a-z]*\) |.*/\1\2/p' docs/errors.md |
    sed 's/outcome$/OUTCOME/; s/fault$/FAULT/' | sort >"$work/page"
[ -s "$work/header" ] || fail "error.h lists no code"
while read -r line; do
    if grep -qxF "$line" "$work/page"; then pass; else fail "docs/errors.md has no row $line"; fi
done <"$work/header"
grep -vxFf "$work/header" "$work/page" >"$work/more" &&
    fail "docs/errors.md has rows that error.h does not: $(cat "$work/more")"

xargs awk -f "$here/links.awk" <"$work/pages" >"$work/links"
while read -r kind page line target; do
    [ "$kind" = link ] || continue
    file=${target%%#*}
    path=$page
    if [ -n "$file" ]; then path=$(dirname "$page")/$file; fi
    if [ ! -e "$path" ]; then
        fail "$page:$line: no $target"
        continue
    fi
    case $target in
    *'#'*)
        plain=$(realpath --relative-to=. "$path")
        if grep -qxF "anchor $plain ${target#*#}" "$work/links"; then
            pass
        else
            fail "$page:$line: $plain has no heading #${target#*#}"
        fi
        ;;
    *) pass ;;
    esac
done <"$work/links"
finish
