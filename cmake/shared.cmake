# What a library needs to be linked as a shared object: symbols that are exported, version of the binary interface.
set(rlx_exports ${PROJECT_SOURCE_DIR}/cmake/exports.map)

# rlx_make_shareable(target): the objects are the same for a static and a shared library, so that the compiler cache
# serves both. The kernels of the levels are hidden by their own flags (cmake/levels.cmake); of the rest
# cmake/exports.map exports the namespace rlx, and nothing of the libraries that rlx is made with.
function(rlx_make_shareable target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON VISIBILITY_INLINES_HIDDEN ON DEFINE_SYMBOL ""
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  # Nobody replaces functions of rlx: calls inside are inlined and direct. Clang does so by itself.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
  if(BUILD_SHARED_LIBS)
    target_link_options(${target} PRIVATE -Wl,--version-script=${rlx_exports} -Wl,-Bsymbolic-functions -Wl,-z,defs)
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${rlx_exports})
  endif()
endfunction()
