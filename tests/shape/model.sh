#!/bin/sh
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# model.sh SOURCE: the functions and scripts that the models name are in the sources.

. "$(dirname "$0")/tally.sh"
cd "$1" || exit 1
if said=$(script/model --names); then pass; else fail "$said"; fi
finish
