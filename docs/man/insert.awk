# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Puts files in the place of the lines @LIST@ and @ENVIRONMENT@ of a page: -v list=FILE
# -v environment=FILE. A comment of the page stays out of the result.

function insert(path, line) {
    while ((getline line < path) > 0)
        if (line !~ /^\.\\"/)
            print line
    close(path)
}

/^\.\\"/ { next }
$0 == "@LIST@" { insert(list); next }
$0 == "@ENVIRONMENT@" { insert(environment); next }
{ print }
