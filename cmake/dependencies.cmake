# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# What the library links to. The installed package looks for the same targets under the same
# names (hirelock-config.cmake.in), so a consumer of the static library gets them too.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

set(hl_pkg_modules hiredis libevent_core)

# TLS, where OpenSSL is.
set(HL_TLS AUTO CACHE STRING "TLS by OpenSSL: ON, OFF, or AUTO (where it is found)")
set_property(CACHE HL_TLS PROPERTY STRINGS AUTO ON OFF)
set(hl_tls_source tls_none.c)
if(HL_TLS)
    pkg_check_modules(hl_openssl QUIET openssl>=3.0)
    if(hl_openssl_FOUND)
        list(APPEND hl_pkg_modules openssl)
        set(hl_tls_source file_stamp.c tls.c tls_authorities.c tls_context.c tls_reason.c)
    elseif(NOT HL_TLS STREQUAL AUTO)
        message(FATAL_ERROR "HL_TLS is ${HL_TLS}, and there is no OpenSSL: script/bootstrap run")
    endif()
endif()
message(STATUS "hirelock: TLS by: ${hl_tls_source}")

# Static probes, where <sys/sdt.h> is: it is a header only.
set(HL_PROBES AUTO CACHE STRING "static probes (USDT): ON, OFF, or AUTO (where sys/sdt.h is found)")
set_property(CACHE HL_PROBES PROPERTY STRINGS AUTO ON OFF)
set(hl_has_probes OFF)
if(HL_PROBES)
    include(CheckIncludeFile)
    check_include_file(sys/sdt.h HL_HAVE_SDT)
    if(HL_HAVE_SDT)
        set(hl_has_probes ON)
    elseif(NOT HL_PROBES STREQUAL AUTO)
        message(FATAL_ERROR "HL_PROBES is ${HL_PROBES}, and there is no sys/sdt.h: script/bootstrap dev")
    endif()
endif()
message(STATUS "hirelock: static probes: ${hl_has_probes}")
pkg_check_modules(hirelock_deps REQUIRED IMPORTED_TARGET GLOBAL ${hl_pkg_modules})
