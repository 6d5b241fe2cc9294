# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Read by scripts that try something on a new Debian, after they are in the project's folder: roots
# made by debootstrap in the temporary folder $work, which goes when the script ends. Needs root.
# The mirror, its keys and the ways to it are those of this machine's apt.

script=${0##*/}
if [ "$(id -u)" -ne 0 ]; then
    echo "$script: needs root, for debootstrap and chroot" >&2
    exit 1
fi
PATH=$PATH:/usr/sbin:/sbin
if ! command -v debootstrap >/dev/null; then
    echo "$script: debootstrap is not here: script/bootstrap dev" >&2
    exit 1
fi

work=$(mktemp -d)
chmod 755 "$work" # apt's own user must get in

# Mounted file systems are not the temporary folder's: they are unmounted before it is removed.
remove_roots() {
    local point
    for point in $(awk -v work="$work/" 'index($2, work) == 1 { print $2 }' /proc/mounts | sort -r); do
        umount "$point" 2>/dev/null || umount -l "$point"
    done
    if ! grep -q " $work/" /proc/mounts; then rm -rf --one-file-system "$work"; fi
}
trap remove_roots EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

apt_setting() { # NAME
    local value=
    eval "$(apt-config shell value "$1")"
    echo "$value"
}

copy_apt_settings() { # ROOT
    apt-config dump | grep -E '^Acquire::(https?::|Check-|ForceIPv)' \
        >"$1/etc/apt/apt.conf.d/99host" || true
    cp /etc/resolv.conf "$1/etc/resolv.conf"
    cp /etc/hosts "$1/etc/hosts"
}

debootstrap_here() { # SUITE ROOT
    local proxy mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    mirror=$(script/mirror) # none: debootstrap has one of its own
    proxy=$(apt_setting Acquire::http::Proxy)
    if [ -n "$proxy" ] && [ "$proxy" != DIRECT ]; then export http_proxy=$proxy; fi
    local options=(--variant=minbase)
    if [ -e "$keyring" ]; then options+=(--keyring="$keyring"); fi
    debootstrap "${options[@]}" "$1" "$2" ${mirror:+"$mirror"} >"$work/debootstrap.log" 2>&1
}

make_root() { # SUITE ROOT
    mkdir "$2"
    chmod 755 "$2"
    if ! debootstrap_here "$1" "$2"; then
        cat "$work/debootstrap.log"
        echo "$script $1: debootstrap failed"
        exit 1
    fi
    copy_apt_settings "$2"
}

mount_root() { # ROOT
    if ! mountpoint -q "$1/proc"; then mount -t proc proc "$1/proc"; fi
    mkdir -p "$1/dev/shm"
    if ! mountpoint -q "$1/dev/shm"; then mount -t tmpfs tmpfs "$1/dev/shm"; fi
    mkdir -p "$1/dev/pts"
    if ! mountpoint -q "$1/dev/pts"; then # for tests with a terminal
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
        ln -sf pts/ptmx "$1/dev/ptmx"
    fi
}

# With nothing of this machine's environment but how much it may do at a time.
inside() { # ROOT FOLDER COMMAND
    chroot "$1" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root LANG=C.UTF-8 TERM=dumb ${HL_TEST_JOBS:+"HL_TEST_JOBS=$HL_TEST_JOBS"} \
        sh -c "cd '$2' && $3" </dev/null
}
