# Flags of every target; level objects (cmake/ops.cmake) add their own.
add_library(rlx_flags INTERFACE)
target_compile_options(rlx_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -ffp-contract=off
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized>)
find_program(RLX_CCACHE ccache)
if(RLX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${RLX_CCACHE})
endif()
find_program(RLX_MOLD mold)
if(RLX_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
