# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# again.sh SOURCE: script/tally.awk and script/again on the output of a ctest that we play: which
# failures get a second run, and how it is judged.
set -u
. "$(dirname "$0")/tally.sh"
source=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# A run of ctest -V: the number, the name and the result of a program, and its output by stdin.
program() { # NUMBER NAME RESULT
    sed "s/^/$1: /"
    echo "1/9 Test #$1: $2 .......   $3   0.10 sec"
}

synthesis() { # TESTED PASSING
    echo "[====] Synthesis: Tested: $1 | Passing: $2 | Failing: $(($1 - $2)) | Crashing: 0"
}

play() {
    { echo "[FAIL] a::late: (0.10s)"; synthesis 3 2; } | program 1 fails_a_check '***Failed'
    { echo "[FAIL] b::hangs: Timed out. (9.00s)"; echo "[FAIL] b::late: (0.10s)"; synthesis 3 1; } |
        program 2 fails_twice '***Failed'
    { echo "[FAIL] c::dies: CRASH!"; echo "[FAIL] c::late: (0.10s)"; synthesis 3 1; } |
        program 3 crashes '***Failed'
    { echo "ERROR: AddressSanitizer: heap-use-after-free"; echo "[FAIL] d::late: (0.10s)"; synthesis 3 2; } |
        program 4 is_reported '***Failed'
    echo "FAIL: a command failed" | program 5 is_no_program '***Failed'
    { echo "[FAIL] e::late: (0.10s)"; synthesis 2 1; } | program 6 ran_too_few '***Failed'
    synthesis 3 3 | program 7 passes Passed
}

play >"$work/run"
for name in fails_a_check fails_twice crashes is_reported ran_too_few passes; do echo "$name 3"; done >"$work/expected"
echo "is_no_program 0" >>"$work/expected"
: >"$work/none"
mkdir "$work/again"
awk -f "$source/script/tally.awk" -v expected="$work/expected" -v needs_root="$work/none" \
    -v again="$work/again" -v sum="$work/sum" <"$work/run" >"$work/shown"

offered=$(cat "$work"/again/*.test | sort | tr '\n' ',')
wanted='fails_a_check a/late,fails_twice b/hangs,fails_twice b/late,is_no_program *,'
if [ "$offered" = "$wanted" ]; then pass; else fail "offered again: $offered"; fi
if [ "$(cat "$work/sum")" = "10 9 0" ]; then pass; else fail "the sum is $(cat "$work/sum")"; fi
if grep -q '^\[FAIL\] b::hangs' "$work"/again/2.first; then pass; else fail "no output is kept"; fi

# Now each passes but b/late; is_no_program ends well without a word.
mkdir "$work/bin"
cat >"$work/bin/ctest" <<'END'
#!/bin/sh
case $CRITERION_TEST_PATTERN in
b/late) echo "1: [====] Synthesis: Tested: 1 | Passing: 0 | Failing: 1 | Crashing: 0"; exit 8 ;;
*) echo "1: [====] Synthesis: Tested: 1 | Passing: 1 | Failing: 0 | Crashing: 0" ;;
esac
END
chmod +x "$work/bin/ctest"
echo build >"$work/again/build"
echo 60 >"$work/again/hang_s"
: >"$work/again/environment"
again() { CRITERION_TEST_PATTERN='' PATH="$work/bin:$PATH" "$source/script/again" "$work/again"; }

again >"$work/shown" && fail "a failure that stays is let pass"
last=$(tail -n 1 "$work/shown")
if [ "$last" = "3 passed when run again, 1 failed" ]; then pass; else fail "said: $last"; fi
if grep -q '^UNSTABLE fails_a_check a/late$' "$work/shown"; then pass; else fail "it is not named"; fi
rm "$work"/again/3.test
again >"$work/shown" || fail "three unstable tests are not let pass"
if grep -q '^FAIL [a-z]' "$work/shown"; then fail "named as failed"; else pass; fi
echo "fails_a_check a/other" >"$work/again/7.test"
: >"$work/again/7.first"
again >"$work/shown" && fail "a fourth unstable test is let pass"
last=$(tail -n 1 "$work/shown")
if [ "$last" = "0 passed when run again, 4 failed" ]; then pass; else fail "said: $last"; fi
finish
