#!/bin/sh
# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# calls.sh SOURCE OBJECT...: how the files of src/ use each other, taken from the symbols of the
# library's objects. None uses what a floor or a room above it defines (the file `order` has them),
# neither by a call nor by a pointer: what a floor tells upward goes by functions that were handed
# down. And no more files than the number below use each other in a circle.

largest_circle=4 # files
arrows_up=0     # between the rooms of a floor

. "$(dirname "$0")/tally.sh"
here=$(cd "$(dirname "$0")" && pwd)
shift
[ $# -gt 0 ] || fail "no objects"
found=$(mktemp) || exit 1
trap 'rm -f "$found"' EXIT

look() { # reads what nm says
    awk -v skip='^.*hl_objects\\.dir/' -f "$here/calls.awk" "$here/order" - | LC_ALL=C sort >"$found"
}

# The check finds planted faults: in a floor below, in a room below, and round a circle of three.
nm_of() { # FILE KIND SYMBOL
    printf 'b/hl_objects.dir/%s.o:%16s %s %s\n' "$1" '' "$2" "$3"
}
{
    nm_of base/a.c T a && nm_of base/a.c U s && nm_of sync/s.c T s && nm_of sync/s.c U a
    nm_of lease/state/t.c T t && nm_of lease/state/t.c U h && nm_of lease/hold/h.c D h
    nm_of lease/hold/h.c U t && nm_of redis/r.c T r && nm_of lease/hold/h.c U r
    nm_of sync/s.c T s2 && nm_of client/c.c T c && nm_of client/c.c U s2 && nm_of base/a.c U c
} | look
for line in 'floor base/a.c s sync/s.c' 'floor base/a.c c client/c.c' \
    'room lease/state/t.c h lease/hold/h.c' 'sum lease 2 2 1'; do
    grep -qx "$line" "$found" && pass || fail "not seen: $line"
done
grep -q '^circle 3 ' "$found" && grep -q '^circle 2 ' "$found" && pass || fail "circles not seen"
[ "$(grep -c '^floor\|^room' "$found")" -eq 3 ] && pass || fail "$(cat "$found")"

nm -A -g "$@" | look

up=0
while read -r what first rest; do
    case $what in
    circle)
        echo "circle of $first: $rest"
        [ "$first" -le "$largest_circle" ] && pass || fail "more than $largest_circle in a circle"
        ;;
    floor) fail "$first uses ${rest% *} of ${rest#* }, on a floor above it" ;;
    room)
        echo "up: $first uses ${rest% *} of ${rest#* }"
        ;;
    sum)
        read -r files arrows upward <<END
$rest
END
        echo "$first: $files files, $arrows arrows, $upward of them up"
        up=$((up + upward))
        pass
        ;;
    esac
done <"$found"
[ "$up" -le "$arrows_up" ] && pass || fail "$up arrows run up between rooms, not $arrows_up"
finish
