# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# The version stands in one place, the public header; CMake reads it there.

function(hl_read_version ret_version)
    set(header ${CMAKE_CURRENT_SOURCE_DIR}/include/hirelock/version.h)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
    file(STRINGS ${header} lines REGEX "^#define HL_VERSION_(MAJOR|MINOR|PATCH) ")
    set(version "")
    foreach(part MAJOR MINOR PATCH)
        if(NOT lines MATCHES "HL_VERSION_${part} ([0-9]+)")
            message(FATAL_ERROR "${header} does not define HL_VERSION_${part}")
        endif()
        list(APPEND version ${CMAKE_MATCH_1})
    endforeach()
    list(JOIN version "." version)
    set(${ret_version} ${version} PARENT_SCOPE)
endfunction()
