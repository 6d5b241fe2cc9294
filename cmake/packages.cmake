# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# cpack -G RPM: a package for each component of install.cmake, named as Fedora names them. Those of
# Debian are made by debian/, whose tools know more of its rules than CPack.

set(CPACK_GENERATOR RPM)
set(CPACK_PACKAGE_CONTACT "hirelock contributors")
set(CPACK_PACKAGE_VENDOR "hirelock contributors")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/rpm)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL lib dev cli doc)
if(NOT TARGET hirelock_cli)
    list(REMOVE_ITEM CPACK_COMPONENTS_ALL cli)
endif()

set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
# What SOURCE_DATE_EPOCH says stands for the time of the build, and nothing for its machine.
set(CPACK_RPM_SPEC_MORE_DEFINE
    "%define use_source_date_epoch_as_buildtime 1
%define clamp_mtime_to_source_date_epoch 1
%define _buildhost hirelock")
set(hl_data ${CMAKE_INSTALL_FULL_DATADIR})
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /usr/local
    ${CMAKE_INSTALL_FULL_LIBDIR}/cmake
    ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
    ${CMAKE_INSTALL_FULL_MANDIR}
    ${CMAKE_INSTALL_FULL_MANDIR}/man1
    ${CMAKE_INSTALL_FULL_MANDIR}/man3
    ${CMAKE_INSTALL_FULL_MANDIR}/man7
    ${hl_data}/bash-completion
    ${hl_data}/bash-completion/completions
    ${hl_data}/zsh
    ${hl_data}/zsh/vendor-completions
    ${hl_data}/fish
    ${hl_data}/fish/vendor_completions.d)

# hl_rpm(COMPONENT NAME GROUP SUMMARY TEXT)
macro(hl_rpm component name group summary text)
    string(TOUPPER ${component} upper)
    set(CPACK_RPM_${upper}_PACKAGE_NAME ${name})
    set(CPACK_RPM_${upper}_PACKAGE_GROUP ${group})
    set(CPACK_RPM_${upper}_PACKAGE_SUMMARY "${summary}")
    set(CPACK_COMPONENT_${upper}_DESCRIPTION "${text}")
endmacro()
set(hl_rpm_libs "hirelock-libs = ${PROJECT_VERSION}-1")
hl_rpm(lib hirelock-libs System/Libraries "Distributed locks on Redis"
       "A C library of distributed locks on Redis, shared with programs of Redisson.")
hl_rpm(dev hirelock-devel Development/Libraries/C "Development files of hirelock"
       "The headers and the static library of hirelock, for pkg-config and CMake.")
set(CPACK_RPM_DEV_PACKAGE_REQUIRES "${hl_rpm_libs}, hiredis-devel, libevent-devel, openssl-devel")
hl_rpm(cli hirelock Applications/Databases "Command for distributed locks on Redis"
       "The command hirelock, for shell scripts and operators.")
set(CPACK_RPM_CLI_PACKAGE_REQUIRES ${hl_rpm_libs})
hl_rpm(doc hirelock-doc Documentation "Documentation of hirelock"
       "The pages of the documentation of hirelock, and its example programs.")
set(CPACK_RPM_DOC_PACKAGE_ARCHITECTURE noarch)
include(CPack)
