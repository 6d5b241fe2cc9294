# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# The two libraries and the tests' one, out of the sources that src/CMakeLists.txt lists.

set(hl_public_include ${PROJECT_SOURCE_DIR}/include)

foreach(target hl_objects hl_testing)
    set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
    target_include_directories(${target} PUBLIC ${hl_public_include} ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${target} PRIVATE hl_internal)
    target_link_libraries(${target} PUBLIC PkgConfig::hirelock_deps Threads::Threads)
endforeach()
set_target_properties(hl_objects PROPERTIES C_VISIBILITY_PRESET hidden
                                            POSITION_INDEPENDENT_CODE ON)
target_compile_definitions(hl_testing PUBLIC HL_TESTING)
if(hl_has_probes)
    target_compile_definitions(hl_objects PRIVATE HL_PROBES)
endif()

add_library(hirelock_shared SHARED $<TARGET_OBJECTS:hl_objects>)
add_library(hirelock_static STATIC $<TARGET_OBJECTS:hl_objects>)
foreach(target hirelock_shared hirelock_static)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME hirelock LINKER_LANGUAGE C)
    target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${hl_public_include}>
                                                   $<INSTALL_INTERFACE:include>)
endforeach()

# Only the static library hands its dependencies on; a user of the shared one needs none of them.
target_link_libraries(hirelock_static PUBLIC PkgConfig::hirelock_deps Threads::Threads)
target_link_libraries(hirelock_shared PRIVATE hl_flags PkgConfig::hirelock_deps Threads::Threads)

# The map is the list of promises: whatever it does not name stays inside.
set(hl_map ${CMAKE_CURRENT_SOURCE_DIR}/hirelock.map)
# Before 1.0 a minor version may break: so its number is part of the name that programs load, as
# the CMake package asks for the same minor version.
set(hl_soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(hl_soversion 0.${PROJECT_VERSION_MINOR})
endif()
set_target_properties(
    hirelock_shared
    PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${hl_soversion} EXPORT_NAME hirelock LINK_DEPENDS ${hl_map})
target_link_options(hirelock_shared PRIVATE LINKER:--version-script=${hl_map} LINKER:--as-needed)
# A thread that acquired runs code of the library when it ends, which may be after a dlclose().
target_link_options(hirelock_shared PRIVATE LINKER:-z,nodelete)
if(HL_SANITIZER STREQUAL "none") # a sanitizer's runtime comes with the program, not the library
    target_link_options(hirelock_shared PRIVATE LINKER:-z,defs)
endif()

add_library(hirelock::hirelock ALIAS hirelock_shared)
add_library(hirelock::hirelock_static ALIAS hirelock_static)
