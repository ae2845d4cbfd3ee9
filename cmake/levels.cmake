# Level objects: every *.simd.cpp is compiled once per instruction level, each time into its own namespace.
# The list, and what a level means, stands in src/core/levels.h too.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  message(FATAL_ERROR "rlx has kernels for x86-64 only; this is ${CMAKE_SYSTEM_PROCESSOR}")
endif()
set(rlx_levels v2 v3 v4 v4b)
set(rlx_level_flags_v2 -march=x86-64-v2)
set(rlx_level_flags_v3 -march=x86-64-v3)
set(rlx_level_flags_v4 -march=x86-64-v4)
set(rlx_level_flags_v4b -march=x86-64-v4 -mavx512bf16 -mavx512vnni)

# rlx_add_levels(target files...): compiles the files at every level and links the objects into the target.
# They are always optimised: without it inline functions of the intrinsics headers would become symbols of the program.
# No precompiled header and no unity build here: both would bring standard headers in.
function(rlx_add_levels target)
  foreach(level IN LISTS rlx_levels)
    set(objects ${target}_${level})
    add_library(${objects} OBJECT ${ARGN})
    target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${objects} PRIVATE rlx_flags)
    target_compile_definitions(${objects} PRIVATE RLX_LEVEL=${level})
    target_compile_options(${objects} PRIVATE -O2 ${rlx_level_flags_${level}}
      -fno-exceptions -fno-rtti -fno-threadsafe-statics
      $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>)  # the AVX-512 headers of g++ 12 read their undefined values
    set_target_properties(${objects} PROPERTIES UNITY_BUILD OFF
      POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()
