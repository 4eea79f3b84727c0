# The few functions with which modules declare their targets.

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
endif()

add_library(edl_options INTERFACE)
target_include_directories(edl_options INTERFACE "${CMAKE_SOURCE_DIR}/src")
target_compile_options(edl_options INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers
                       -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(edl_options INTERFACE -Wthread-safety)
endif()
if(EDL_SANITIZE)
  add_compile_options(-fsanitize=${EDL_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${EDL_SANITIZE})
endif()

# edl_library(NAME SOURCES ... LINK ...): the one library of a module.
function(edl_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC edl_options ${ARG_LINK})
endfunction()

# edl_test(NAME SOURCES ... LINK ...): one test program for a module, run by ctest as NAME.
# Each source must be listed: `tools/check_tests` fails on a _test.cc that no target lists.
function(edl_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK" ${ARGN})
  add_executable(${name}_test ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE edl_options ${ARG_LINK} GTest::gtest GTest::gmock
                        GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name}_test)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()
