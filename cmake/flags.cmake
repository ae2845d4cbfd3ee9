# Flags of every target, compiler cache, linker, precompiled headers. Level objects (cmake/levels.cmake) add their own.
option(RLX_WERROR "Warnings are errors" ${PROJECT_IS_TOP_LEVEL})
add_library(rlx_flags INTERFACE)
target_compile_options(rlx_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion $<$<BOOL:${RLX_WERROR}>:-Werror> -ffp-contract=off
  -Wno-missing-field-initializers  # designated initializers name what differs from the default
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized>)

# The cache is told what it may ignore here, so that no environment variable is needed. Paths below the source folder
# count as relative: every checkout shares the cached objects.
find_program(RLX_CCACHE ccache)
mark_as_advanced(RLX_CCACHE)
if(RLX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${RLX_CCACHE})
endif()

# The fastest linker that is installed. Clang finds its own lld only by the versioned name beside it.
find_program(RLX_MOLD mold)
mark_as_advanced(RLX_MOLD)
if(RLX_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  string(REGEX MATCH "^[0-9]+" clang_major ${CMAKE_CXX_COMPILER_VERSION})
  find_program(RLX_LLD NAMES ld.lld-${clang_major} ld.lld)
  mark_as_advanced(RLX_LLD)
  if(RLX_LLD)
    add_link_options(--ld-path=${RLX_LLD})
  endif()
endif()

# rlx_precompile(target headers...): headers that nearly every file of the target uses, read once.
# Sources still include what they use: the preset `tidy` compiles without precompiled headers.
option(RLX_PCH "Use precompiled headers" ON)
function(rlx_precompile target)
  if(RLX_PCH)
    target_precompile_headers(${target} PRIVATE ${ARGN})
    # Clang writes the header's time into the result, which would make every cache entry unique.
    target_compile_options(${target} PRIVATE
      "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
endfunction()
