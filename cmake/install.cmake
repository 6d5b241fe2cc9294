# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Install rules: both libraries, the headers, a CMake package and a pkg-config file for each way
# of linking, the manual, and the pages. Components: lib (what a program needs to run), dev (what it
# needs to be built), cli (the command), doc.

include(CMakePackageConfigHelpers)
set(hl_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hirelock)
set(hl_package ${PROJECT_BINARY_DIR}/package)

# Two export sets: the static one needs the dependencies' development files, the shared one not.
foreach(kind shared static)
    install(
        TARGETS hirelock_${kind}
        EXPORT hirelock-${kind}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT lib NAMELINK_COMPONENT dev
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
    install(
        EXPORT hirelock-${kind}
        NAMESPACE hirelock::
        DESTINATION ${hl_cmake_dir}
        COMPONENT dev)
endforeach()
if(TARGET hirelock_cli)
    install(TARGETS hirelock_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT cli)
    set(hl_completion ${PROJECT_SOURCE_DIR}/src/cli/completion)
    install(FILES ${hl_completion}/hirelock.bash RENAME hirelock COMPONENT cli
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${hl_completion}/hirelock.zsh RENAME _hirelock COMPONENT cli
            DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
    install(FILES ${hl_completion}/hirelock.fish COMPONENT cli
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hirelock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT dev FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT lib)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc
        FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN "*.svg"
        PATTERN "*.yml" PATTERN "*.json" PATTERN "*.bt" PATTERN man EXCLUDE PATTERN site EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc
        FILES_MATCHING PATTERN "*.c" PATTERN "*.h" PATTERN "*.cpp")

include(${CMAKE_CURRENT_LIST_DIR}/manual.cmake)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/hirelock-config.cmake.in
                              ${hl_package}/hirelock-config.cmake
                              INSTALL_DESTINATION ${hl_cmake_dir})
# Before 1.0 a minor version may break.
set(hl_compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(hl_compatibility SameMinorVersion)
endif()
write_basic_package_version_file(${hl_package}/hirelock-config-version.cmake
                                 COMPATIBILITY ${hl_compatibility})
install(FILES ${hl_package}/hirelock-config.cmake ${hl_package}/hirelock-config-version.cmake
        DESTINATION ${hl_cmake_dir} COMPONENT dev)

# Relative to the file where it can be, so that an installed tree may be moved.
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    set(hl_pc_prefix ${CMAKE_INSTALL_PREFIX})
    set(hl_pc_libdir ${CMAKE_INSTALL_LIBDIR})
else()
    file(RELATIVE_PATH hl_pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
    string(REGEX REPLACE "/$" "" hl_pc_up "${hl_pc_up}")
    set(hl_pc_prefix \${pcfiledir}/${hl_pc_up})
    set(hl_pc_libdir \${prefix}/${CMAKE_INSTALL_LIBDIR})
endif()
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_INCLUDEDIR BASE_DIRECTORY "\${prefix}" OUTPUT_VARIABLE
           hl_pc_includedir)
list(JOIN hl_pkg_modules " " hl_pc_modules)
# For --static of the first file. As flags, since pkg-config asks for the modules of
# Requires.private even where the shared library is linked, which needs none of them.
set(hl_static_flags ${hirelock_deps_STATIC_LDFLAGS})
foreach(dir IN LISTS CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
    list(REMOVE_ITEM hl_static_flags -L${dir})
endforeach()
list(JOIN hl_static_flags " " hl_pc_private)
foreach(name hirelock hirelock-static)
    configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${hl_package}/${name}.pc @ONLY)
    install(FILES ${hl_package}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
            COMPONENT dev)
endforeach()

if(PROJECT_IS_TOP_LEVEL) # names of targets, and CPack's settings, are those of the whole build
    include(${CMAKE_CURRENT_LIST_DIR}/packages.cmake)
    add_custom_target(
        uninstall
        COMMAND ${CMAKE_COMMAND} -DBUILD_DIR=${PROJECT_BINARY_DIR} -P
                ${CMAKE_CURRENT_LIST_DIR}/uninstall.cmake
        VERBATIM)
endif()
