# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# What the library links to. The installed package looks for the same targets under the same
# names (hirelock-config.cmake.in), so a consumer of the static library gets them too.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# libevent_extra, for evdns, before libevent_core, which it needs: static linking minds the order.
set(hl_pkg_modules hiredis libevent_extra libevent_core)
pkg_check_modules(hirelock_deps REQUIRED IMPORTED_TARGET GLOBAL ${hl_pkg_modules})
