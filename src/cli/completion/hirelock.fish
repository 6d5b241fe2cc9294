# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Completion of hirelock(1) for fish: see hirelock.bash.

function __hirelock_commands
    hirelock help 2>/dev/null | string replace -rf '^  ([a-z]+)  +(.*)' '$1\t$2'
end

function __hirelock_options
    set -l words (commandline -opc)
    hirelock $words[2] --help 2>/dev/null | string replace -rf '^ +(?:-[A-Za-z?], *)?(--[a-z-]+=?)\S* *(.*)' '$1\t$2'
end

function __hirelock_names
    set -l word (commandline -ct)
    timeout 2 hirelock list --json --limit 200 "$word*" 2>/dev/null |
        string replace -rf '^\{"name":"([^"\\\\]*)".*' '$1'
end

function __hirelock_command
    set -l words (commandline -opc)
    contains -- "$words[2]" $argv
end

function __hirelock_is_begun
    test (count (commandline -opc)) -gt 1
end

complete -c hirelock -f
complete -c hirelock -n 'not __hirelock_is_begun' -a '(__hirelock_commands)'
complete -c hirelock -n '__hirelock_command help' -a '(__hirelock_commands)'
complete -c hirelock -n '__hirelock_is_begun; and string match -q -- "-*" (commandline -ct)' -a '(__hirelock_options)'
complete -c hirelock -n '__hirelock_command inspect unlock watch wait run' -a '(__hirelock_names)'
complete -c hirelock -n '__hirelock_command run; and contains -- -- (commandline -opc)' -a '(__fish_complete_command)'
