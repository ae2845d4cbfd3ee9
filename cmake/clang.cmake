# Toolchain of the clang presets: the newest tested clang that is installed.
find_program(RLX_CLANG NAMES clang++-22 clang++-19 clang++)
mark_as_advanced(RLX_CLANG)
if(NOT RLX_CLANG)
  message(FATAL_ERROR "no clang found: run scripts/setup --ci")
endif()
set(CMAKE_CXX_COMPILER ${RLX_CLANG})
