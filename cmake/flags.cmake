# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# Flags as targets: nothing here is set globally, and nothing here is seen by a project that uses
# the library.

add_library(hl_warnings INTERFACE)
target_compile_options(
    hl_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wvla
                          $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
                          $<$<NOT:$<BOOL:$<TARGET_PROPERTY:C_EXTENSIONS>>>:-pedantic>
                          $<$<BOOL:${HL_WERROR}>:-Werror>
                          # error texts are shortened to their buffer on purpose
                          $<$<COMPILE_LANG_AND_ID:C,GNU>:-Wno-format-truncation>)

# The sanitizer in use: for every compilation and every link.
add_library(hl_sanitizer INTERFACE)
if(HL_SANITIZER STREQUAL "address-undefined")
    set(hl_sanitizer_flags -fsanitize=address,undefined -fno-sanitize-recover=all)
elseif(HL_SANITIZER STREQUAL "thread")
    set(hl_sanitizer_flags -fsanitize=thread)
elseif(NOT HL_SANITIZER STREQUAL "none")
    message(FATAL_ERROR "HL_SANITIZER is ${HL_SANITIZER}: none, address-undefined or thread")
endif()
if(NOT HL_SANITIZER STREQUAL "none")
    target_compile_options(hl_sanitizer INTERFACE ${hl_sanitizer_flags} -fno-omit-frame-pointer)
    target_link_options(hl_sanitizer INTERFACE ${hl_sanitizer_flags})
endif()

# Not with a sanitizer: fortified calls go past its interceptors. FORTIFY needs optimisation.
add_library(hl_hardening INTERFACE)
if(HL_SANITIZER STREQUAL "none")
    set(hl_optimised $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
    target_compile_options(
        hl_hardening INTERFACE -fstack-protector-strong
                               "$<${hl_optimised}:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
    target_link_options(hl_hardening INTERFACE LINKER:-z,relro LINKER:-z,now)
endif()

# For our own programs and libraries. _GNU_SOURCE is empty so that a source which defines it too
# is no redefinition; examples, which show what a user writes, do without it.
add_library(hl_flags INTERFACE)
target_link_libraries(hl_flags INTERFACE hl_warnings hl_sanitizer hl_hardening)
add_library(hl_internal INTERFACE)
# A C++ compiler defines it itself.
target_compile_definitions(hl_internal INTERFACE $<$<COMPILE_LANGUAGE:C>:_GNU_SOURCE=>)
target_link_libraries(hl_internal INTERFACE hl_flags)
