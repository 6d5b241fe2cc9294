# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Doxygen's input filter: shows it the plain comments of our public headers in the form that it
# reads, so that the headers themselves need no marks.
#
#   the first comment of a file      /** @file ...
#   a comment in front of something  /** ...
#   a comment behind something       /**< ...
#   "Threads:" and "Returns:"        paragraphs of their own
#   the map of result codes          the enumerators that the compiler makes of it

# What Doxygen would take for a tag or a command is shown as it stands.
function plain(text) {
    gsub(/\\/, "\\\\", text)
    gsub(/@/, "\\@", text)
    gsub(/</, "\\&lt;", text)
    gsub(/>/, "\\&gt;", text)
    sub(/Threads: */, "@par Threads\n * ", text)
    sub(/Returns: */, "@par Returns\n * ", text)
    return text
}

function comment(text, end) {
    end = index(text, "*/")
    inside = !end
    return end ? plain(substr(text, 1, end - 1)) "*/" substr(text, end + 2) : plain(text)
}

FNR == 1 { seen = 0; codes = 0 }

/^ *X\(E[A-Z0-9]+, -[0-9]+, "/ { listed[++codes] = $0 }

/HL_ERROR_MAP\(HL_ERROR_ENUM\)/ {
    for (i = 1; i <= codes; i++) {
        split(listed[i], part, "\"")
        split(part[1], word, /[(,] */)
        class = part[3] ~ /OUTCOME/ ? "outcome" : "fault"
        print "HL_" word[2] " = " word[3] ", /**< " part[2] " (" class ") */"
    }
    next
}

/HL_ERROR_ENUM/ { print ""; next }

/SPDX-|clang-format o/ { print ""; next }

inside { print comment($0); next }

!index($0, "/*") { print; next }

{
    code = substr($0, 1, index($0, "/*") - 1)
    mark = code ~ /[^ \t]/ ? "/**<" : seen++ ? "/**" : "/** @file\n *"
    print code mark comment(substr($0, index($0, "/*") + 2))
}
