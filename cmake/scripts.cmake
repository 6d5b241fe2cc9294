# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# hl_scripts(LIST): embeds lua/name.lua for each row X(NAME, ...) of the header LIST, in its order.

function(hl_scripts list)
    set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
    set(embed ${PROJECT_SOURCE_DIR}/cmake/embed_lua.cmake)
    set(lua ${PROJECT_SOURCE_DIR}/lua)
    # All of them, so that embed_lua.cmake alone knows which file includes which.
    file(GLOB files CONFIGURE_DEPENDS ${lua}/*.lua)
    set(output ${generated}/redis/script_table.c)
    add_custom_command(
        OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DLUA_DIR=${lua} -DLIST=${list} -P ${embed}
        DEPENDS ${embed} ${list} ${files}
        COMMENT "Embedding lua/"
        VERBATIM)
    # One target makes the file; the libraries wait for it, so that two of them never race.
    add_custom_target(hl_generated DEPENDS ${output})
    foreach(target hl_objects hl_testing)
        add_dependencies(${target} hl_generated)
        target_sources(${target} PRIVATE ${output})
    endforeach()
endfunction()
