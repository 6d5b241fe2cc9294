#!/bin/sh
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# mutants.sh SOURCE: the text that each planted fault replaces stands once in its function, what
# becomes of the file compiles, and its test is there, so that none is lost when a file is changed. A
# fault applies wherever its function has gone and however it is set; one that does not is reported.

. "$(dirname "$0")/tally.sh"
cd "$1" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

if script/mutants --check >"$work/report" 2>&1; then pass; else fail "$(cat "$work/report")"; fi

mkdir -p "$work/script" "$work/tests/mutants" "$work/tests/unit" "$work/src/deep" "$work/lua"
cp script/mutants script/plant.pl "$work/script"
cat >"$work/src/deep/x.c" <<'END'
#define LIMIT 7 /* y */
static const int table[] = {1, 2, /* three */
    3};
int x(int (*f)(int)) /* int x() */
{
    const char *s = "";
    if (f(1)) { /* why */
        s = "a /* b */"; s = s + 1; s = s + 2;
    }
    return *s;
}
int y(void) { return y(); }
END
echo 'local a = 1 -- one
  return a' >"$work/lua/s.lua"
echo 'Test(s, t)' >"$work/tests/unit/p.c"

applies() { # IN FROM TO [TEST]
    printf 'title: t\nkilled by: unit_p s/%s\nin: %s\n--- from\n%s\n--- to\n%s\n' \
        "${4:-t}" "$1" "$2" "$3" >"$work/tests/mutants/m.mutant"
    "$work/script/mutants" --check >"$work/report" 2>&1
}
good() { if applies "$@"; then pass; else fail "$1, $2: $(cat "$work/report")"; fi; }
bad() { # MESSAGE IN FROM TO [TEST]
    message=$1
    shift
    if ! applies "$@" && grep -q "$message" "$work/report"; then
        pass
    else
        fail "not \"$message\": $1, $2: $(cat "$work/report")"
    fi
}

good x 'if (f(1)) {
s = "a /* b */"; // reset, and worded otherwise' '{'
good x 'return *s;' 'return 1;'
good table '2,3' 4
good LIMIT 7 8
good s.lua 'local a=1 return a' 'return'
bad 'deep/x.c does not compile' x 'return *s;' 'return u;'
bad '0 times in x' x 'return z;' ';'
bad '0 times in x; it stands in table' x '{1, 2' ';'
bad '0 times in x' x 'return *s; } int' ';'
bad '0 times in x' x 'eturn *s;' ';'
bad '2 times in x' x 's +' ';'
bad '0 times in s.lua' s.lua 'local b' ';'
bad 'z is defined nowhere; it stands in y' z 'return y();' ';'
bad 'replaces nothing' x '/* why */' ';'
bad 'u stands nowhere' x 'return *s;' ';' u
finish
