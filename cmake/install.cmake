# Installing and packing: library, public headers, CMake package, pkg-config file, program, licence. Nothing that is
# installed holds an absolute path, so that an unpacked archive works in any folder.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # the targets rlx and rlx_program are enough, tests need not be built

install(TARGETS rlx EXPORT rlx LIBRARY COMPONENT library NAMELINK_COMPONENT library ARCHIVE COMPONENT library)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/rlx)
install(EXPORT rlx NAMESPACE rlx:: FILE rlx-targets.cmake DESTINATION ${package_folder} COMPONENT library)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/rlx-config.cmake.in ${CMAKE_BINARY_DIR}/package/rlx-config.cmake
  INSTALL_DESTINATION ${package_folder} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/rlx-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/package/rlx-config.cmake ${CMAKE_BINARY_DIR}/package/rlx-config-version.cmake
  DESTINATION ${package_folder} COMPONENT library)

# pkg-config: a static library needs what it was made with on the line of whoever links it.
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
set(pc_requires "fmt, libutf8proc, libpcre2-8, zlib")
set(pc_requires_private "")
set(pc_libs "-L\${libdir} -lrlx -pthread -ldl")
if(BUILD_SHARED_LIBS)
  set(pc_requires fmt)
  set(pc_requires_private "libutf8proc, libpcre2-8, zlib")
  set(pc_libs "-L\${libdir} -lrlx")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/rlx.pc.in ${CMAKE_BINARY_DIR}/package/rlx.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/package/rlx.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)

string(CONFIGURE [[
  set(source_folder "@PROJECT_SOURCE_DIR@")
  set(generated_folder "@CMAKE_BINARY_DIR@/generated")
  set(staging_folder "@CMAKE_BINARY_DIR@/package/include")
  set(include_folder "@CMAKE_INSTALL_INCLUDEDIR@")
]] header_settings @ONLY)
install(CODE "${header_settings}" COMPONENT library)
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_headers.cmake COMPONENT library)
if(NOT BUILD_SHARED_LIBS AND CMAKE_STRIP)
  install(CODE "if(CMAKE_INSTALL_DO_STRIP)
    execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/librlx.a\" COMMAND_ERROR_IS_FATAL ANY)
  endif()" COMPONENT library)
endif()

if(RLX_PROGRAM)
  file(RELATIVE_PATH library_from_program ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  if(BUILD_SHARED_LIBS)
    set_target_properties(rlx_program PROPERTIES INSTALL_RPATH $ORIGIN/${library_from_program})
  endif()
  install(TARGETS rlx_program RUNTIME COMPONENT program)
endif()
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)

# `cpack` in the build folder makes the archive, without debug information.
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_VENDOR "rlx")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "A machine-learning compiler and runtime")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(package_form static)
if(BUILD_SHARED_LIBS)
  set(package_form shared)
endif()
string(TOLOWER "${CMAKE_SYSTEM_NAME}" package_system)
set(CPACK_PACKAGE_FILE_NAME rlx-${PROJECT_VERSION}-${package_system}-${CMAKE_SYSTEM_PROCESSOR}-${package_form})
include(CPack)
