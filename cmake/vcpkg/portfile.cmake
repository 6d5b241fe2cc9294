# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# The port of vcpkg: vcpkg install hirelock --overlay-ports=cmake/vcpkg. It builds the sources that
# it stands in, and has one of the two libraries, as the triplet says.

get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES tls HL_TLS)
vcpkg_find_acquire_program(PKGCONFIG)
# Probes depend on a header of the system, so that they are left out.
vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        ${features}
        "-DPKG_CONFIG_EXECUTABLE=${PKGCONFIG}"
        -DHL_PROBES=OFF
        -DHL_BUILD_TESTS=OFF
        -DHL_BUILD_CLI=OFF
        -DHL_BUILD_EXAMPLES=OFF
        -DHL_BUILD_BENCH=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/hirelock)

if(VCPKG_LIBRARY_LINKAGE STREQUAL dynamic)
    set(other *.a *static*)
else()
    set(other *.so* *shared*)
endif()
set(found "")
foreach(pattern IN LISTS other)
    foreach(folder lib lib/pkgconfig share/hirelock debug/lib debug/lib/pkgconfig)
        file(GLOB files "${CURRENT_PACKAGES_DIR}/${folder}/${pattern}")
        list(APPEND found ${files})
    endforeach()
endforeach()
file(REMOVE ${found})
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/man" "${CURRENT_PACKAGES_DIR}/share/doc")
configure_file("${CMAKE_CURRENT_LIST_DIR}/usage" "${CURRENT_PACKAGES_DIR}/share/${PORT}/usage" COPYONLY)
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
