# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Makes a page of section 3 of one public header: its declarations and their comments, in the
# language mdoc(7). Run behind docs/pieces.awk and docs/man/mdoc.awk, with -v page=hl_lock
# -v date='November 25, 2026' -v version=0.1.0 -v others='the pages to see, one after the other';
# with -v names=1 it prints only the names that the page explains, one on each line, and with
# -v summary=1 only what the header is for.

function trim(text) {
    gsub(/[ \t]+/, " ", text)
    sub(/^ /, "", text)
    sub(/ $/, "", text)
    return text
}

# What stands before the next declaration. The comment of the whole file is the first that is not
# the licence.
function comment_begins(is_behind) {
    behind = is_behind && depth > 0
    if (!behind)
        comment = ""
}

function comment_line(text) {
    if (text ~ /SPDX|clang-format/)
        return
    sub(/^ *\*? ?/, "", text)
    text = trim(text)
    if (behind)
        fields[count] = fields[count] (text == "" ? "" : fields[count] == "" ? text : "\n" text)
    else
        comment = comment == "" ? text : comment "\n" text
}

function keep_file_comment() {
    if (about == "" && comment != "")
        about = comment
    comment = ""
}

function item(kind, head, text) {
    items++
    kinds[items] = kind
    heads[items] = head
    texts[items] = text
}

function directive(line, part) {
    if (about == "")
        keep_file_comment()
    if (line ~ /^ *X\(E/) {
        split(line, part, "\"")
        split(part[1], head, /[(,] */)
        codes[++code_count] = "HL_" head[2] "\t" head[3] "\t" part[2] "\t" \
            (part[3] ~ /OUTCOME/ ? "an outcome" : "a fault")
    } else if (line ~ /^#define HL_[A-Z_0-9]+ [^\\]*[^\\ ]$/ && line !~ /_INIT|__attribute__/) {
        split(line, part, " ")
        item("constant", part[2] " = " trim(substr(line, index(line, part[2]) + length(part[2]))),
             comment)
        comment = ""
    } else if (line !~ /^ /)
        comment = ""
}

# A field of a struct, or an enumerator: the comment in front of it, or what comes behind it.
function field(text) {
    text = trim(text)
    sub(/[,;]$/, "", text)
    if (text == "" || text ~ /HL_ERROR_ENUM|HL_ERROR_MAP/)
        return
    count++
    field_heads[count] = text
    fields[count] = comment
    comment = ""
}

function declared(text, name, i) {
    text = trim(text)
    if (text ~ /^extern "C"/ || text == ";" || text == "}")
        return
    if (text ~ /^HL_API /) {
        sub(/^HL_API (HL_MUST_CHECK )?/, "", text)
        item("function", text, comment)
    } else if (text ~ /^typedef [^{]*\(\*/)
        item("callback", text, comment)
    else if (text ~ /^typedef struct hl_[a-z_]+ hl_[a-z_]+;$/)
        item("opaque", text, comment)
    comment = ""
}

# One piece at a time, up to its next brace or end.
function code(text, at) {
    if (text ~ /extern "C" \{/ || (depth == 0 && text ~ /^ *\} *$/)) {
        return
    }
    while ((at = match(text, depth == 0 ? "[;{]" : is_enum ? "[,}]" : "[;}]")) > 0) {
        pending = pending " " substr(text, 1, at)
        text = substr(text, at + 1)
        if (pending ~ /\{$/)
            block_begins()
        else if (pending ~ /\}$/)
            block_ends()
        else if (depth)
            take_field()
        else {
            if (closing)
                closing = 0
            else
                declared(pending)
            pending = ""
        }
    }
    if (text ~ /[^ \t]/)
        pending = pending " " text
}

function take_field() {
    field(pending)
    pending = ""
}

function block_begins() {
    block = trim(pending)
    block_comment = comment
    comment = ""
    is_enum = block ~ /enum/
    depth = 1
    first[items + 1] = count + 1
    pending = ""
}

function block_ends() {
    sub(/\}$/, "", pending)
    take_field()
    sub(/^typedef /, "", block)
    sub(/ *\{$/, "", block)
    item(is_enum ? "enum" : "struct", block, block_comment)
    last[items] = count
    depth = 0
    closing = 1
    comment = ""
}

# The name that a declaration declares.
function name_of(i, text) {
    text = heads[i]
    if (kinds[i] == "function" || kinds[i] == "callback")
        match(text, /hl_[a-z0-9_]+ *\(|\(\*hl_[a-z0-9_]+/)
    else if (kinds[i] == "constant")
        match(text, /^[A-Z0-9_]+/)
    else if (!match(text, /hl_[a-z0-9_]+/))
        return ""
    text = substr(text, RSTART, RLENGTH)
    gsub(/[(* ]/, "", text)
    return text
}

function print_names(i, name) {
    for (i = 1; i <= items; i++)
        if ((name = name_of(i)) ~ /^hl_/)
            print name
}

# What the header is for: the beginning of its comment.
function subject(text) {
    text = about
    gsub(/\n/, " ", text)
    sub(/[:.,].*/, "", text)
    return tolower(substr(text, 1, 1)) substr(text, 2)
}

# .Nm for each function, so that apropos(1) and whatis(1) find them.
function print_name_section(i, n, list, text) {
    list[n = 1] = page
    for (i = 1; i <= items; i++)
        if (kinds[i] == "function" && name_of(i) != page)
            list[++n] = name_of(i)
    print ".Sh NAME"
    for (i = 1; i <= n; i++)
        print ".Nm " list[i] (i < n ? " ," : "")
    print ".Nd " subject()
}

function print_arguments(text, list, n, i) {
    n = split(text, list, /, */)
    for (i = 1; i <= n; i++)
        print ".Fa \"" trim(list[i]) "\""
}

function print_synopsis(i, open, text, name) {
    print ".Sh LIBRARY\nlibhirelock " version ", which pkg-config knows as\n.Dq hirelock"
    print ".Sh SYNOPSIS\n.In hirelock/" header
    for (i = 1; i <= items; i++) {
        if (kinds[i] != "function")
            continue
        text = heads[i]
        name = name_of(i)
        open = index(text, name)
        print ".Ft \"" trim(substr(text, 1, open - 1)) "\"\n.Fo " name
        text = substr(text, open + length(name))
        sub(/^ *\(/, "", text)
        sub(/\) *;$/, "", text)
        print_arguments(text)
        print ".Fc"
    }
}

# Comments behind a field are no whole sentences; a name keeps its letters.
function sentence(text) {
    if (text == "")
        return ""
    if (text ~ /^[a-z]+[ ,;:]/)
        text = toupper(substr(text, 1, 1)) substr(text, 2)
    return text ~ /[.]$/ ? text : text "."
}

function print_fields(from, to, i) {
    if (from > to)
        return
    print ".Bl -tag -width Ds"
    for (i = from; i <= to; i++) {
        if (field_heads[i] == "size_t size") {
            print ".It Vt size_t Fa size\nThe size of the struct: the macro _INIT sets it."
            continue
        }
        print ".It " plain(field_heads[i])
        mdoc(sentence(fields[i]))
    }
    print ".El"
}

function print_codes(i, part) {
    print ".Ss Result codes\n.Bl -tag -width Ds"
    for (i = 1; i <= code_count; i++) {
        split(codes[i], part, "\t")
        print ".It Er " part[1] " = " part[2]
        print toupper(substr(part[3], 1, 1)) substr(part[3], 2) ": " part[4] "."
    }
    print ".El"
}

function print_types(i, heading) {
    for (i = 1; i <= items; i++) {
        if (kinds[i] == "function" || kinds[i] == "opaque")
            continue
        heading = kinds[i] == "constant" || kinds[i] == "callback" ? name_of(i) : heads[i]
        if (kinds[i] == "enum" && name_of(i) == "")
            heading = "Constants " field_name(first[i]) (first[i] < last[i] ? " and others" : "")
        if (kinds[i] == "enum" && first[i] > last[i])
            continue
        print ".Ss " heading
        if (kinds[i] == "callback" || kinds[i] == "constant")
            print ".Bd -literal -compact\n" plain(heads[i]) "\n.Ed" (texts[i] == "" ? "" : "\n.Pp")
        mdoc(texts[i])
        if (kinds[i] == "struct" || kinds[i] == "enum")
            print_fields(first[i], last[i])
    }
    if (code_count)
        print_codes()
}

function field_name(i, text) {
    text = field_heads[i]
    sub(/ *=.*/, "", text)
    return text
}

function print_functions(i) {
    print ".Sh FUNCTIONS"
    for (i = 1; i <= items; i++)
        if (kinds[i] == "function") {
            print ".Ss " name_of(i)
            mdoc(texts[i])
        }
}

function print_see_also(list, n, i) {
    print ".Sh SEE ALSO"
    n = split(others, list, " ")
    for (i = 1; i <= n; i++)
        if (list[i] != page)
            print ".Xr " list[i] " 3 ,"
    print ".Xr hirelock 7"
}

END {
    if (names) {
        print_names()
        exit
    }
    if (summary) {
        print subject()
        exit
    }
    print ".Dd " date "\n.Dt " toupper(page) " 3\n.Os"
    print_name_section()
    print_synopsis()
    print ".Sh DESCRIPTION"
    mdoc(about)
    print_types()
    print_functions()
    print_see_also()
}
