# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Reads the output of `ctest -V` and counts tests, not programs: a line for each program, all of
# its output when something failed, the reason of each skipped test, the figures that tests tell,
# and, in the file "sum", the sum.
# "expected" and "needs_root" name files of lines "PROGRAM COUNT", where 0 is one test that is no
# program of ours. A program that ran fewer tests than it lists has failed the others.
# "again" is a folder: for each failure that script/again may look at once more it gets a file
# N.test, "PROGRAM TEST", with * for a whole program, and N.first, the output.

function count_of(listed) {
    return listed > 0 ? listed : 1
}

# A crash, or the report of a sanitizer in any test of the program, is final.
function note_failure(id, text,    test) {
    test = text
    sub(/^\[FAIL\] /, "", test)
    sub(/: .*/, "", test)
    sub(/::/, "/", test)
    if (text ~ /: CRASH!|: the sanitizer reported/)
        finals[id]++
    else
        failures[id, ++failure_count[id]] = test
}

function offer_again(name, id, test) {
    print name, test >(again "/" ++offered ".test")
    printf "%s", output[id] >(again "/" offered ".first")
    close(again "/" offered ".test")
    close(again "/" offered ".first")
}

# Only if each of the failures is known by its name; of a program that hung, or is none of ours, all.
function offer_failures(name, id, count, result,    i) {
    if (finals[id] > 0 || output[id] ~ /(ERROR|WARNING|SUMMARY): [A-Za-z]+Sanitizer|: runtime error: /)
        return
    if (failure_count[id] == count) {
        for (i = 1; i <= count; i++) offer_again(name, id, failures[id, i])
    } else if (listed[name] == 0 || result ~ /^Timeout/) {
        offer_again(name, id, "*")
    }
}

# Criterion prints on one line how many tests it ran and how many of them passed; a skipped test has
# a line of its own and is in neither number.
function read_line(id, text,    word) {
    output[id] = output[id] text "\n"
    if (text ~ /^\[SKIP\] [^ ]* left out: /) {
        outs[id]++
    } else if (text ~ /^\[SKIP\] /) {
        skips[id]++
        reasons[id] = reasons[id] "       skipped: " substr(text, 8) "\n"
    } else if (text ~ /^\[FAIL\] /) {
        note_failure(id, text)
    } else if (text ~ /^\[TELL\] /) {
        told[id] = told[id] "       " substr(text, 8) "\n"
    } else if (text ~ /^\[====\] Synthesis: Tested: /) {
        split(text, word, /[ |:]+/)
        passes[id] += word[6]
        synthesis[id] = 1
    } else if (text ~ /crashed during its setup or teardown/) { # Criterion only warns of it
        crashes[id]++
    }
}

function judge(id, name, result, seconds,    p, f, s) {
    seen[name] = 1
    if (listed[name] > 0) {
        p = passes[id] - crashes[id]
        s = skips[id] + 0
        f = listed[name] - p - s - outs[id]
        if (!(id in synthesis)) { p = 0; s = 0; f = listed[name]; result = result ", no closing line" }
        if (f < 0) { f = 1; result = result ", more tests than listed" }
        if (f == 0 && result != "Passed") { f = 1; if (p > 0) p-- }
    } else {
        p = result == "Passed"
        s = result == "Skipped"
        f = !p && !s
    }
    passed += p; failed += f; skipped += s
    printf "%-4s %-34s %3d passed", f ? "FAIL" : "ok", name, p
    if (f) printf ", %d failed", f
    if (s) printf ", %d skipped", s
    if (outs[id]) printf ", %d left out", outs[id]
    printf " (%s s)%s\n", seconds, result == "Passed" || result == "Failed" ? "" : " " result
    printf "%s", told[id]
    if (f) offer_failures(name, id, f, result)
    if (f) printf "---- output of %s\n%s---- end of %s\n", name, output[id], name
    else if (s) printf "%s", id in reasons ? reasons[id] : output[id]
    fflush()
    delete output[id]
}

BEGIN {
    while ((getline line < expected) > 0) {
        split(line, field, " ")
        listed[field[1]] = field[2]
    }
}

/^[0-9]+: (Test command|Working Directory|Environment variables|Test timeout)/ { next }

match($0, /^[0-9]+: ?/) {
    id = $0
    sub(/:.*/, "", id)
    read_line(id, substr($0, RLENGTH + 1))
    next
}

/^ *[0-9]+\/[0-9]+ +Test +#[0-9]+: / {
    id = $0
    sub(/^[^#]*#/, "", id)
    name = id
    sub(/:.*/, "", id)
    sub(/^[0-9]+: */, "", name)
    result = name
    sub(/ .*/, "", name)
    seconds = $(NF - 1)
    sub(/^[^ ]+ \.*/, "", result)
    sub(/^[ *]+/, "", result)
    sub(/  +.*$/, "", result)
    judge(id, name, result, seconds)
    next
}

/^(CMake Error|Errors while running CTest|ctest: )/ { print }

END {
    for (name in listed)
        if (!(name in seen)) {
            printf "FAIL %s did not run\n", name
            failed += count_of(listed[name])
        }
    while ((getline line < needs_root) > 0) {
        split(line, field, " ")
        printf "skip %-34s needs root\n", field[1]
        skipped += count_of(field[2])
    }
    if (passed + failed == 0) {
        print "FAIL no test ran"
        failed = 1
    }
    print passed, failed, skipped + 0 >sum
}
