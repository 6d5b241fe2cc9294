# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Prints the subcommands of `hirelock help`, each with its summary: "wait wait until ...".

/^$/ { block++; next }
/^  [a-z]/ && block == 1 { $1 = $1; print }
