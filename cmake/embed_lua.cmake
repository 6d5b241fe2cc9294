# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Turns Lua scripts into C, run as
#   cmake -DOUTPUT=file.c -DLUA_DIR=dir -DLIST=script_list.h -P embed_lua.cmake
# and writes the bytes and the SHA-1 digest of LUA_DIR/name.lua for each row X(NAME, ...) of LIST.
# In a script the line "-- include NAME" stands for the text of LUA_DIR/NAME.lua. Bytes, not a
# string literal: C11 guarantees only 4,095 characters of those. The comments stay here, so that
# each SCRIPT LOAD sends the server what it runs. The digest is of exactly these bytes, so it is the
# one that SCRIPT LOAD answers.

# read_script(NAME TEXT)
function(read_script name ret_text)
    file(READ ${LUA_DIR}/${name}.lua text)
    string(REGEX MATCHALL "\n *-- include [a-z_]+" lines "\n${text}")
    foreach(line IN LISTS lines)
        string(REGEX REPLACE ".* " "" included "${line}")
        read_script(${included} included_text)
        string(REPLACE "-- include ${included}\n" "\n${included_text}" text "${text}")
    endforeach()
    set(${ret_text} "${text}" PARENT_SCOPE)
endfunction()

# strip_comments(TEXT RET): without its comments, lines that are empty then, and blank lines. A
# comment with no quote behind its dashes is certainly in no string, which would end behind them;
# the scripts' comments behind code have no quotes.
function(strip_comments text ret_text)
    string(REGEX REPLACE "\n *--[^\n]*" "\n" text "\n${text}")
    string(REGEX REPLACE " +--[^'\"\n]*\n" "\n" text "${text}")
    string(REGEX REPLACE "\n\n+" "\n" text "${text}")
    string(REGEX REPLACE "^\n" "" text "${text}")
    set(${ret_text} "${text}" PARENT_SCOPE)
endfunction()

get_filename_component(folder ${OUTPUT} DIRECTORY)
file(READ ${LIST} list)
string(REGEX MATCHALL "\n    X\\([A-Z_]+," rows_of_list "${list}")
set(texts "")
set(rows "")

foreach(row IN LISTS rows_of_list)
    string(REGEX REPLACE "\n    X\\(|," "" upper "${row}")
    string(TOLOWER ${upper} name)
    read_script(${name} text)
    strip_comments("${text}" text)
    set(file ${folder}/${name}.lua)
    file(WRITE ${file} "${text}")
    file(SHA1 ${file} digest)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "((0x..,)(0x..,)?(0x..,)?(0x..,)?(0x..,)?(0x..,)?(0x..,)?(0x..,)?)"
                         "    \\1\n" bytes "${bytes}")
    string(APPEND texts "\nstatic const unsigned char ${name}_text[] = {\n${bytes}};\n")
    string(APPEND rows "    [HLI_SCRIPT_${upper}] = {\"${name}\", ${name}_text, sizeof(${name}_text),\n"
                       "        \"${digest}\"},\n")
endforeach()

file(WRITE ${OUTPUT}
    "/* SPDX-FileCopyrightText: hirelock contributors */\n/* SPDX-License-Identifier: MIT */\n"
    "/* Generated from lua/ by cmake/embed_lua.cmake. */\n#include \"redis/script.h\"\n${texts}\n"
    "const struct hli_script hli_script_table[HLI_SCRIPT_COUNT] = {\n${rows}};\n")
