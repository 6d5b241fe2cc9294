# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Turns lua/*.lua into C, run as
#   cmake -DOUTPUT_DIR=dir -DLUA_DIR=dir -DSCRIPTS=a,b -P embed_lua.cmake
# and writes
#   OUTPUT_DIR/redis/script_list.h   the X-macro behind the enum of scripts
#   OUTPUT_DIR/redis/script_table.c  the scripts' bytes and SHA-1 digests
# A file that is named like the first word of others, family.lua, stands before each family_verb.lua.
# A line "-- include NAME" stands for the script of that name, with what stands before it. Bytes, not a string literal: C11 guarantees only 4,095 characters of those. The digest is of
# exactly these bytes, so it is the one that SCRIPT LOAD answers.

# read_script(NAME TEXT)
function(read_script name ret_text)
    string(REGEX REPLACE "_.*" "" family ${name})
    set(text "")
    foreach(part ${family} ${name})
        if(EXISTS ${LUA_DIR}/${part}.lua)
            file(READ ${LUA_DIR}/${part}.lua part_text)
            string(APPEND text "${part_text}")
        endif()
    endforeach()
    string(REGEX MATCHALL "\n *-- include [a-z_]+" includes "${text}")
    foreach(include IN LISTS includes)
        string(REGEX REPLACE ".* " "" included ${include})
        read_script(${included} included_text)
        string(REPLACE "${include}\n" "\n${included_text}" text "${text}")
    endforeach()
    set(${ret_text} "${text}" PARENT_SCOPE)
endfunction()

string(REPLACE "," ";" SCRIPTS "${SCRIPTS}")
set(spdx "/* SPDX-FileCopyrightText: hirelock contributors */\n/* SPDX-License-Identifier: MIT */\n")
set(head "${spdx}/* Generated from lua/ by cmake/embed_lua.cmake. */\n")
set(map "")
set(texts "")
set(rows "")

foreach(name IN LISTS SCRIPTS)
    set(file ${OUTPUT_DIR}/${name}.lua)
    read_script(${name} text)
    file(WRITE ${file} "${text}")
    file(SHA1 ${file} digest)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "((0x..,)(0x..,)?(0x..,)?(0x..,)?(0x..,)?(0x..,)?(0x..,)?(0x..,)?)"
                         "    \\1\n" bytes "${bytes}")
    string(TOUPPER ${name} upper)
    string(APPEND map " \\\n    X(${upper}, ${name})")
    string(APPEND texts "\nstatic const unsigned char ${name}_text[] = {\n${bytes}};\n")
    string(APPEND rows "    [HLI_SCRIPT_${upper}] = {\"${name}\", ${name}_text, sizeof(${name}_text),\n"
                       "        \"${digest}\"},\n")
endforeach()

file(WRITE ${OUTPUT_DIR}/redis/script_list.h
    "${head}#ifndef HLI_REDIS_SCRIPT_LIST_H\n#define HLI_REDIS_SCRIPT_LIST_H\n"
    "/* X(NAME, name) */\n#define HLI_SCRIPT_MAP(X)${map}\n#endif\n")
file(WRITE ${OUTPUT_DIR}/redis/script_table.c
    "${head}#include \"redis/script.h\"\n${texts}\n"
    "const struct hli_script hli_script_table[HLI_SCRIPT_COUNT] = {\n${rows}};\n")
