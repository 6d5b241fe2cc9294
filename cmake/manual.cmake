# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# The manual pages: made by docs/man/build.sh from the public headers, the command's --help and
# docs/man, with sh and awk alone. The command is run for it, so a cross build has no section 1.

set(hl_man ${PROJECT_BINARY_DIR}/man)
set(hl_man_program)
if(TARGET hirelock_cli AND NOT CMAKE_CROSSCOMPILING)
    set(hl_man_program $<TARGET_FILE:hirelock_cli>)
endif()
file(GLOB hl_man_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*
     ${PROJECT_SOURCE_DIR}/include/hirelock/*.h)
add_custom_command(
    OUTPUT ${hl_man}.stamp
    COMMAND sh ${PROJECT_SOURCE_DIR}/docs/man/build.sh ${PROJECT_SOURCE_DIR} ${hl_man}
            ${hl_man_program}
    COMMAND ${CMAKE_COMMAND} -E touch ${hl_man}.stamp
    DEPENDS ${hl_man_sources} ${PROJECT_SOURCE_DIR}/docs/pieces.awk ${hl_man_program}
    COMMENT "Making the manual pages"
    VERBATIM)
add_custom_target(hirelock_man ALL DEPENDS ${hl_man}.stamp)
if(HL_BUILD_TESTS)
    add_dependencies(hl_beside_test_programs hirelock_man) # pages of examples install all
endif()

if(hl_man_program)
    install(DIRECTORY ${hl_man}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT cli)
endif()
install(DIRECTORY ${hl_man}/man3 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT dev)
install(DIRECTORY ${hl_man}/man7 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT doc)
