#compdef hirelock
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Completion of hirelock(1) for zsh: see hirelock.bash.

_hirelock_commands() {
    local -a commands
    commands=(${(f)"$(hirelock help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\)  *\(.*\)/\1:\2/p')"})
    _describe command commands
}

_hirelock_options() { # COMMAND
    local -a options
    options=(${(f)"$(hirelock $1 --help 2>/dev/null |
        sed -n 's/^  *\(-[A-Za-z?], *\)\{0,1\}\(--[a-z-]*=\{0,1\}\).*/\2/p')"})
    compadd -S '' -M 'r:|-=*' -- $options
}

_hirelock_names() {
    local -a names
    names=(${(f)"$(timeout 2 hirelock list --json --limit 200 "$PREFIX*" 2>/dev/null |
        sed -n 's/^{"name":"\([^"\\]*\)".*/\1/p')"})
    compadd -- $names
}

_hirelock() {
    local command=$words[2] dashes=${words[(i)--]}
    if ((CURRENT == 2)); then
        _hirelock_commands
    elif [[ $command == run ]] && ((dashes < CURRENT)); then # the rest is another's
        shift $dashes words
        ((CURRENT -= dashes))
        _normal
    elif [[ $command == help ]]; then
        _hirelock_commands
    elif [[ $PREFIX == -* ]]; then
        _hirelock_options $command
    elif [[ $command == (inspect|unlock|watch|wait|run) ]]; then
        _hirelock_names
    fi
}

_hirelock "$@"
