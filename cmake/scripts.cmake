# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# hl_scripts(NAME...): embeds lua/NAME.lua, in this order, as HLI_SCRIPT_NAME; behind lua/FAMILY.lua,
# if there is one for the first word of its name.

function(hl_scripts)
    set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
    set(embed ${PROJECT_SOURCE_DIR}/cmake/embed_lua.cmake)
    set(lua ${PROJECT_SOURCE_DIR}/lua)
    set(files ${ARGN})
    list(TRANSFORM files REPLACE "(.+)" "${lua}/\\1.lua")
    list(JOIN ARGN "," names)
    set(families ${ARGN})
    list(TRANSFORM families REPLACE "_.*" "")
    list(REMOVE_DUPLICATES families)
    foreach(family IN LISTS families)
        if(EXISTS ${lua}/${family}.lua)
            list(APPEND files ${lua}/${family}.lua)
            file(STRINGS ${lua}/${family}.lua included REGEX "^ *-- include [a-z_]+$")
            list(TRANSFORM included REPLACE ".* (.+)" "${lua}/\\1.lua")
            list(APPEND files ${included})
        endif()
    endforeach()
    set(outputs ${generated}/redis/script_list.h ${generated}/redis/script_table.c)
    add_custom_command(
        OUTPUT ${outputs}
        COMMAND ${CMAKE_COMMAND} -DOUTPUT_DIR=${generated} -DLUA_DIR=${lua} -DSCRIPTS=${names} -P
                ${embed}
        DEPENDS ${embed} ${files}
        COMMENT "Embedding lua/"
        VERBATIM)
    # One target makes the files; the libraries wait for it, so that two of them never race.
    add_custom_target(hl_generated DEPENDS ${outputs})
    foreach(target hl_objects hl_testing)
        add_dependencies(${target} hl_generated)
        target_sources(${target} PRIVATE ${outputs})
        target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${generated}>)
    endforeach()
endfunction()
