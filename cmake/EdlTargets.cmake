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
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 at -O2 takes std::string::insert and operator+ for overlapping copies (GCC bug 105651).
  target_compile_options(edl_options INTERFACE $<$<CONFIG:RelWithDebInfo>:-Wno-restrict>)
endif()
# What we hand out names files from the top of the tree, and is the same from every clone. ccache
# makes paths relative to the build folder; compiled without it they are absolute. The last one wins.
file(RELATIVE_PATH edl_top "${CMAKE_BINARY_DIR}" "${CMAKE_SOURCE_DIR}")
foreach(prefix "${CMAKE_SOURCE_DIR}/" "${edl_top}" "${CMAKE_BINARY_DIR}/")
  add_compile_options($<$<CONFIG:RelWithDebInfo>:-ffile-prefix-map=${prefix}=>)
endforeach()
if(EDL_SANITIZE)
  add_compile_options(-fsanitize=${EDL_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${EDL_SANITIZE})
endif()
if(EDL_FUZZ)
  # The coverage that guides a fuzz target; a test program built with it only counts in vain.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# edl_library(NAME [SHARED_TOO] SOURCES ... LINK ...): the one library of a module. SHARED_TOO: what
# Python or C programs load has it inside. Its names are hidden there, as another library of the
# process may have the same; that also lets the compiler inline as in a program.
function(edl_library name)
  cmake_parse_arguments(ARG "SHARED_TOO" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  if(ARG_SHARED_TOO)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
                          CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  endif()
  target_link_libraries(${name} PUBLIC edl_options ${ARG_LINK})
endfunction()

# Builds every test program, and with EDL_FUZZ every fuzz target.
add_custom_target(unit_tests ALL)
add_custom_target(fuzzers)

# Whether one of the targets links gRPC, however indirectly.
function(edl_links_grpc result)
  foreach(target ${ARGN})
    if(target STREQUAL "PkgConfig::GRPCPP")
      set(${result} TRUE PARENT_SCOPE)
      return()
    elseif(TARGET ${target})
      get_target_property(below ${target} INTERFACE_LINK_LIBRARIES)
      edl_links_grpc(found ${below})
      if(found)
        set(${result} TRUE PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
  set(${result} FALSE PARENT_SCOPE)
endfunction()

# edl_test(NAME SOURCES ... LINK ...): one test program for a module, run by ctest as NAME.
# Each source must be listed: `tools/check_tests` fails on a _test.cc that no target lists.
function(edl_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK" ${ARGN})
  add_executable(${name}_test EXCLUDE_FROM_ALL ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE edl_options ${ARG_LINK} GTest::gtest GTest::gmock
                        GTest::gtest_main)
  # Debian's gRPC is not built for the thread sanitizer, which would report its inside as races.
  edl_links_grpc(grpc ${ARG_LINK})
  if(grpc AND EDL_SANITIZE STREQUAL "thread")
    return()
  endif()
  add_dependencies(unit_tests ${name}_test)
  add_test(NAME ${name} COMMAND ${name}_test)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()

# edl_fuzz(NAME SOURCES ... LINK ...): a fuzz target, replayed from tests/fuzz/corpus/NAME and run
# by `make fuzz`. Only the fuzz preset has them.
function(edl_fuzz name)
  if(NOT EDL_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name}_fuzz ${ARG_SOURCES})
  target_link_libraries(${name}_fuzz PRIVATE edl_options ${ARG_LINK})
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name}_fuzz PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                        "${CMAKE_BINARY_DIR}/fuzzers")
  add_dependencies(fuzzers ${name}_fuzz)
endfunction()
