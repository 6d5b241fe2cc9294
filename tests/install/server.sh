# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
#
# Read by the scripts that try what is installed: a redis-server of their own in the folder $work.
# REDIS_URL is its address, for the programs beside it.

server=
REDIS_URL=unix://$work/redis/socket
export REDIS_URL

start_server() {
    mkdir "$work/redis"
    "${HL_REDIS_SERVER:-redis-server}" --port 0 --unixsocket "$work/redis/socket" --save '' \
        --dir "$work/redis" >"$work/redis/log" 2>&1 &
    server=$!
    for _ in $(seq 240); do # a minute at most
        [ ! -S "$work/redis/socket" ] || return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.25
    done
    cat "$work/redis/log"
    return 1
}

stop_server() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null
    server=
}
