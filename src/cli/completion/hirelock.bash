# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Completion of hirelock(1) for bash. It asks the program for its commands and options, and the server
# for names of locks, so that it knows what they know.

_hirelock_commands() {
    hirelock help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p'
}

_hirelock_options() { # COMMAND
    hirelock "$1" --help 2>/dev/null |
        sed -n 's/^  *\(-[A-Za-z?], *\)\{0,1\}\(--[a-z-]*=\{0,1\}\).*/\2/p'
}

_hirelock_names() { # BEGINNING
    timeout 2 hirelock list --json --limit 200 "$1*" 2>/dev/null |
        sed -n 's/^{"name":"\([^"\\]*\)".*/\1/p'
}

# Not by compgen -W: it would run what a name has in $(...), and names come from the server.
_hirelock_complete_name() { # BEGINNING
    local name
    while IFS= read -r name; do
        COMPREPLY+=("$(printf '%q' "$name")")
    done < <(_hirelock_names "$1")
}

_hirelock() {
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} at
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_hirelock_commands) help --help --version" -- "$word")
        return
    fi
    for ((at = 2; at < COMP_CWORD; at++)); do
        if [ "$command" = run ] && [ "${COMP_WORDS[at]}" = -- ]; then # the rest is another's
            if declare -F _command_offset >/dev/null; then
                _command_offset $((at + 1))
            else
                mapfile -t COMPREPLY < <(compgen -c -- "$word")
            fi
            return
        fi
    done
    case $command:$word in
    help:*) mapfile -t COMPREPLY < <(compgen -W "$(_hirelock_commands)" -- "$word") ;;
    *:-*)
        mapfile -t COMPREPLY < <(compgen -W "$(_hirelock_options "$command")" -- "$word")
        case ${COMPREPLY[*]} in *=) compopt -o nospace 2>/dev/null ;; esac
        ;;
    inspect:* | unlock:* | watch:* | wait:* | run:*) _hirelock_complete_name "$word" ;;
    esac
}

complete -F _hirelock hirelock
