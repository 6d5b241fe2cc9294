# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Turns the files of the page into C, run as
#   cmake -DOUTPUT=file.c -DFOLDER=page -P embed.cmake
# Bytes, not string literals: C11 guarantees only 4,095 characters of those.

set(texts "")
set(rows "")
foreach(row IN ITEMS "index.html|/|text/html" "shop.css|/shop.css|text/css"
                     "shop.js|/shop.js|text/javascript")
    string(REPLACE "|" ";" row "${row}")
    list(GET row 0 file)
    list(GET row 1 path)
    list(GET row 2 type)
    string(REPLACE "." "_" name "${file}")
    file(READ ${FOLDER}/${file} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "((0x..,)(0x..,)?(0x..,)?(0x..,)?(0x..,)?(0x..,)?(0x..,)?(0x..,)?)"
                         "    \\1\n" bytes "${bytes}")
    string(APPEND texts "\nstatic const unsigned char ${name}[] = {\n${bytes}};\n")
    string(APPEND rows "    {\"${path}\", \"${type}; charset=utf-8\", ${name}, sizeof(${name})},\n")
endforeach()

file(WRITE ${OUTPUT}
    "/* SPDX-FileCopyrightText: hirelock contributors */\n/* SPDX-License-Identifier: MIT */\n"
    "/* Generated from examples/shop/page by embed.cmake. */\n#include \"page.h\"\n${texts}\n"
    "const struct page_file page_files[] = {\n${rows}};\n"
    "const size_t page_file_count = sizeof(page_files) / sizeof(*page_files);\n")
