# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# cmake -DBUILD_DIR=dir -P uninstall.cmake: removes the files that the last installs from this build
# have put where they are; with DESTDIR, as the install had it. Folders stay.

file(GLOB manifests ${BUILD_DIR}/install_manifest*.txt)
if(NOT manifests)
    message(FATAL_ERROR "uninstall: nothing was installed from ${BUILD_DIR}")
endif()
foreach(manifest IN LISTS manifests)
    file(STRINGS ${manifest} files)
    foreach(file IN LISTS files)
        file(REMOVE "$ENV{DESTDIR}${file}")
    endforeach()
    file(REMOVE ${manifest})
endforeach()
