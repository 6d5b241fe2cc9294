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

FNR == 1 { seen = 0 }

/SPDX-|clang-format o/ { print ""; next }

inside { print comment($0); next }

!index($0, "/*") { print; next }

{
    code = substr($0, 1, index($0, "/*") - 1)
    mark = code ~ /[^ \t]/ ? "/**<" : seen++ ? "/**" : "/** @file\n *"
    print code mark comment(substr($0, index($0, "/*") + 2))
}
