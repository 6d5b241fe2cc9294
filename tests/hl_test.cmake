# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# How a test is built: hl_test_support() for what all share, hl_test() for each, and
# hl_test_again() for those that are run with other handles too.

# hl_test_support(FILE...): the library of tests/support.
function(hl_test_support)
    list(TRANSFORM ARGN PREPEND support/)
    add_library(hl_test_support STATIC ${ARGN})
    if(HL_SANITIZER STREQUAL "thread")
        target_sources(hl_test_support PRIVATE support/test_runner.c)
        target_compile_definitions(hl_test_support PUBLIC HL_TEST_RUNNER)
    else()
        target_link_libraries(hl_test_support PUBLIC PkgConfig::hl_criterion)
    endif()
    if(HL_SANITIZER STREQUAL "address-undefined")
        target_sources(hl_test_support INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/criterion_leaks.c)
    endif()
    hl_test_settings(hl_test_support)
    target_link_libraries(hl_test_support PUBLIC hl_testing)
    # redis-server loads it to have its clock moved; it has no sanitizer, so the shim has none.
    add_library(hl_clock_shim MODULE support/clock_shim.c)
    target_link_libraries(hl_clock_shim PRIVATE hl_warnings)
    target_compile_definitions(hl_clock_shim PRIVATE _GNU_SOURCE=)
    set_target_properties(hl_clock_shim PROPERTIES C_STANDARD 11 C_EXTENSIONS ON)
    add_dependencies(hl_test_support hl_clock_shim)
    target_compile_definitions(hl_test_support PRIVATE
                               HL_CLOCK_SHIM_PATH="$<TARGET_FILE:hl_clock_shim>")
    # For support/wording.c.
    target_link_options(hl_test_support INTERFACE LINKER:--wrap=hl_client_open)
    # Tests name what they share as "support/redis_server.h".
    target_include_directories(hl_test_support PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()

# hl_test(FOLDER NAME [SLOW] [LONG] [ROOT] [WITH FILE...]): FOLDER/NAME.c, with files of support/ that
# are not for all tests, becomes the program and test FOLDER_NAME. LONG: too long for the quick tests
# of script/test, but a sanitizer runs it. SLOW: neither.
function(hl_test folder name)
    cmake_parse_arguments(PARSE_ARGV 2 arg "SLOW;LONG;ROOT" "" "WITH")
    list(TRANSFORM arg_WITH PREPEND support/)
    set(target ${folder}_${name})
    if(folder STREQUAL "integration")
        list(APPEND arg_WITH support/shared_servers_begin.c)
    endif()
    add_executable(${target} ${folder}/${name}.c ${arg_WITH})
    hl_test_settings(${target})
    target_link_libraries(${target} PRIVATE hl_test_support)
    add_test(NAME ${target} COMMAND ${target})
    if(arg_LONG AND HL_SANITIZER STREQUAL "none")
        set(arg_SLOW TRUE)
    endif()
    hl_test_properties(${target} ${folder} "${arg_SLOW}" "${arg_ROOT}")
endfunction()

# hl_test_again(FOLDER NAME WORD... [SLOW] [QUICK] [DAILY]): the same program once more as
# FOLDER_NAME_WORD for each WORD:
#   posted, retained, fair          whose handles have that option (support/handle.h)
#   tls                             whose servers have it (support/redis_server.h)
#   sentinel, cluster, plain_cluster  whose laws share such servers (support/shared_servers.h)
#   cluster_words, sharded_words    whose clients word their requests as in a cluster, at one server
#                                   (support/wording.c)
# Each sanitizer runs half of those with options: these programs have run under it already, and take
# most of its time. All are LONG, but those that are QUICK. Each has one of the labels day0, day1 and
# day2, in turn: script/test --all runs those of one day, so a program that is run at three kinds of
# servers is run at one of them a day. Not those that are QUICK or DAILY.
function(hl_test_again folder name)
    cmake_parse_arguments(PARSE_ARGV 2 arg "SLOW;QUICK;DAILY" "" "")
    get_property(turn GLOBAL PROPERTY hl_test_turn)
    if(HL_SANITIZER STREQUAL "none" AND NOT arg_QUICK)
        set(arg_SLOW TRUE)
    endif()
    if(HL_SANITIZER STREQUAL "address-undefined")
        list(REMOVE_ITEM arg_UNPARSED_ARGUMENTS retained)
    elseif(HL_SANITIZER STREQUAL "thread")
        list(REMOVE_ITEM arg_UNPARSED_ARGUMENTS posted)
    endif()
    foreach(word IN LISTS arg_UNPARSED_ARGUMENTS)
        set(test ${folder}_${name}_${word})
        add_test(NAME ${test} COMMAND ${folder}_${name})
        hl_test_properties(${test} ${folder} "${arg_SLOW}" "")
        if(word MATCHES "^(cluster|sharded)_words$")
            set(environment HL_TEST_WORDING=${CMAKE_MATCH_1})
        elseif(word MATCHES "^(tls|sentinel|cluster|plain_cluster)$")
            set(environment HL_TEST_SERVER=${word})
        else()
            set(environment HL_TEST_HANDLE=${word})
        endif()
        set_tests_properties(${test} PROPERTIES ENVIRONMENT ${environment})
        if(NOT arg_QUICK AND NOT arg_DAILY)
            math(EXPR turn "(0${turn} + 1) % 3")
            set_property(TEST ${test} APPEND PROPERTY LABELS day${turn})
        endif()
    endforeach()
    set_property(GLOBAL PROPERTY hl_test_turn "${turn}")
endfunction()

# hl_test_alone(TEST...): these, with all their handles, share the machine with no other test.
function(hl_test_alone)
    foreach(test IN LISTS ARGN)
        foreach(handle IN ITEMS "" _posted _retained)
            if(TEST ${test}${handle})
                set_tests_properties(${test}${handle} PROPERTIES RUN_SERIAL ON)
            endif()
        endforeach()
    endforeach()
endfunction()

# hl_test_plugins(TARGET): support/plugin.c twice, as HL_PLUGIN_SHARED and HL_PLUGIN_STATIC, which tell
# the library that it was linked with.
function(hl_test_plugins target)
    foreach(kind IN ITEMS shared static)
        string(TOUPPER ${kind} upper)
        add_library(hl_plugin_${kind} MODULE support/plugin.c)
        target_link_libraries(hl_plugin_${kind} PRIVATE hirelock_${kind})
        add_dependencies(${target} hl_plugin_${kind})
        target_compile_definitions(${target} PRIVATE
                                   HL_PLUGIN_${upper}="$<TARGET_FILE:hl_plugin_${kind}>")
    endforeach()
endfunction()

# hl_beside_test_programs(FOLDER...): the target of this name is all that the tests use and that is
# no program of theirs: what is built in these folders. script/test builds it, and of the programs
# those that it runs.
function(hl_beside_test_programs)
    add_custom_target(hl_beside_test_programs)
    foreach(folder IN LISTS ARGN)
        get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
        add_dependencies(hl_beside_test_programs ${targets})
    endforeach()
endfunction()

# Its labels; how long it may take says script/test.
function(hl_test_properties test folder is_slow is_root)
    set(labels ${folder})
    if(is_slow)
        list(APPEND labels slow)
    endif()
    if(is_root)
        list(APPEND labels root)
    endif()
    if(NOT is_slow AND NOT is_root)
        list(APPEND labels quick)
    endif()
    if(NOT HL_SANITIZER STREQUAL "none")
        # Criterion lets a test pass whose process reported a leak as it ended.
        set_tests_properties(${test} PROPERTIES FAIL_REGULAR_EXPRESSION
                                                "(ERROR|WARNING): [A-Za-z]+Sanitizer")
    endif()
    set_tests_properties(${test} PROPERTIES LABELS "${labels}")
endfunction()

function(hl_test_settings target)
    # Tests may use what GNU adds to C, such as printf's %m; the library may not.
    set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS ON)
    target_link_libraries(${target} PRIVATE hl_internal)
endfunction()
