# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Makes the page of a subcommand of what its --help prints, and of the part written by hand: that
# one's first section, then OPTIONS, ENVIRONMENT, and the other sections. A line @times@ of that part
# stands for the file docs/man/times, which several pages show. Run behind mdoc.awk, with
# -v name=wait -v summary='wait until ...' -v hand=FILE -v environment=FILE.

function usage(text) {
    gsub(/\.\.\./, " ...", text)
    gsub(/\|/, " | ", text)
    return text
}

function synopsis(i) {
    print ".Sh NAME\n.Nm hirelock-" name "\n.Nd " plain(summary)
    print ".Sh SYNOPSIS"
    for (i = 1; i <= uses; i++) {
        print ".Nm hirelock " name
        if (use[i] != "")
            folded(plain(usage(use[i])))
    }
}

# "  -w, --timeout=SECONDS     how long at most": the words of an option, and what it does.
function option(text, at, head, list, n, i, part) {
    sub(/^ +/, "", text)
    at = match(text, /  +/) # the text stands behind two spaces or more
    head = at ? substr(text, 1, at - 1) : text
    text = at ? substr(text, at + RLENGTH) : ""
    n = split(head, list, ", ")
    for (i = 1; i <= n; i++) {
        split(list[i], part, "=")
        sub(/^--?/, "", part[1])
        part[1] = (list[i] ~ /^--/ ? "Fl -" : "Fl ") (part[1] == "?" ? "\\&?" : plain(part[1]))
        list[i] = part[1] (part[2] == "" ? "" : " Ns = Ns Ar " plain(part[2]))
        part[2] = ""
    }
    head = list[1]
    for (i = 2; i <= n; i++)
        head = head " , " list[i]
    print ".It " head
    sentences(toupper(substr(text, 1, 1)) substr(text, 2) (text ~ /[.)]$/ ? "" : "."))
}

function insert(path, line) {
    while ((getline line < path) > 0)
        if (line !~ /^\.\\"/)
            print line
    close(path)
}

# What --help says, and what all commands read.
function options_section(i) {
    print ".Sh OPTIONS\n.Bl -tag -width Ds"
    for (i = 1; i <= options; i++)
        option(line_of[i])
    print ".El"
    insert(environment)
}

/^(Usage:|  or: )/ {
    sub(/^(Usage:|  or: ) */, "")
    sub(/^hirelock [a-z-]+ ?/, "")
    use[++uses] = $0
}

/^ +-/ { line_of[++options] = $0 }

END {
    synopsis()
    folder = hand
    sub(/[^\/]*$/, "", folder)
    while ((getline line < hand) > 0) {
        if (line ~ /^\.\\"/)
            continue
        if (line ~ /^\.Sh/ && ++sections == 2)
            options_section()
        if (line ~ /^@[a-z-]+@$/)
            insert(folder substr(line, 2, length(line) - 2))
        else
            print line
    }
    if (sections < 2)
        options_section()
    print ".Sh SEE ALSO\n.Xr hirelock 1 ,\n.Xr hirelock 7"
}
