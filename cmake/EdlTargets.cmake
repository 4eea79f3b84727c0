# The functions with which modules declare their targets.

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_SOURCE_DIR}/tools/compile")
  # ccache needs these options for precompiled headers.
  add_compile_options("$<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>"
                      "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

add_library(edl_options INTERFACE)
target_include_directories(edl_options INTERFACE "${CMAKE_SOURCE_DIR}/src")
target_compile_options(edl_options INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers
                       -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(edl_options INTERFACE -Wthread-safety)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 at -O2 takes std::string::insert and operator+ for overlapping copies (GCC bug 105651),
  # and a move of a short std::string for a copy beyond its end (105762). The other builds check.
  target_compile_options(edl_options INTERFACE
                         $<$<CONFIG:RelWithDebInfo>:-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread>)
endif()
# Release builds contain paths from the root of the tree, so every clone builds the same bytes. ccache
# makes paths relative to the build folder; without ccache they are absolute. The last match counts.
file(RELATIVE_PATH edl_top "${CMAKE_BINARY_DIR}" "${CMAKE_SOURCE_DIR}")
foreach(prefix "${CMAKE_SOURCE_DIR}/" "${edl_top}" "${CMAKE_BINARY_DIR}/")
  add_compile_options($<$<CONFIG:RelWithDebInfo>:-ffile-prefix-map=${prefix}=>)
endforeach()
if(EDL_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ takes a class of a source file for one of a header, because another file includes the source.
  add_compile_options(-Wno-subobject-linkage)
endif()
if(EDL_SANITIZE)
  add_compile_options(-fsanitize=${EDL_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${EDL_SANITIZE})
endif()
if(EDL_FUZZ)
  # Coverage guides the fuzz targets. Test programs are built with it too, and do not use it.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Precompiled headers. Parsing the standard library, fmt, JSON and gRPC took most of the time of a
# build. Our own headers are not precompiled, because a change of one would compile everything again.
# Each file still includes what it uses, and compiles without the precompiled header.
set(edl_headers <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstddef> <cstdint> <cstdlib>
    <cstring> <deque> <filesystem> <fstream> <functional> <limits> <map> <memory> <optional> <random>
    <set> <span> <string> <string_view> <system_error> <thread> <utility> <variant> <vector>
    <fmt/format.h> <fmt/ranges.h> <nlohmann/json.hpp>)
set(edl_test_headers <gmock/gmock.h> <gtest/gtest.h>)
set(edl_grpc_headers <grpcpp/grpcpp.h>)

# edl_precompiled(NAME HEADERS): an empty library whose precompiled headers other targets reuse. Those
# targets must have the same compile options.
function(edl_precompiled name)
  file(CONFIGURE OUTPUT "${name}.cc" CONTENT "// Empty.\n")
  add_library(${name} STATIC EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/${name}.cc")
  target_link_libraries(${name} PRIVATE edl_options fmt::fmt nlohmann_json::nlohmann_json)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

# Sets the compile options of a static library that is also linked into shared libraries.
function(edl_make_shareable name)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
                        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# edl_library(NAME [SHARED_TOO] [OWN_OPTIONS] SOURCES ... LINK ...): the library of a module.
# SHARED_TOO: it is also part of a shared library that Python or C programs load. Its symbols are
# hidden there, because other libraries of the process may have the same names; hidden symbols also let
# the compiler inline as in a program. OWN_OPTIONS: it has compile options of its own, so it cannot
# reuse the precompiled headers of other targets.
function(edl_library name)
  cmake_parse_arguments(ARG "SHARED_TOO;OWN_OPTIONS" "" "SOURCES;ALONE;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES} ${ARG_ALONE})
  target_link_libraries(${name} PUBLIC edl_options ${ARG_LINK})
  if(EDL_UNITY AND NOT ARG_OWN_OPTIONS)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  edl_links_grpc(grpc ${ARG_LINK})
  if(ARG_OWN_OPTIONS)
    target_precompile_headers(${name} PRIVATE ${edl_headers})
    target_link_libraries(${name} PUBLIC nlohmann_json::nlohmann_json)
  elseif(ARG_SHARED_TOO)
    target_precompile_headers(${name} REUSE_FROM edl_precompiled_shared)
  elseif(grpc)
    target_precompile_headers(${name} REUSE_FROM edl_precompiled_grpc)
  else()
    target_precompile_headers(${name} REUSE_FROM edl_precompiled)
  endif()
  if(ARG_SHARED_TOO)
    edl_make_shareable(${name})
  endif()
endfunction()

# Builds every test program, and with EDL_FUZZ every fuzz target.
add_custom_target(unit_tests ALL)
add_custom_target(fuzzers)

# Whether one of the targets links gRPC, directly or indirectly.
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
  target_precompile_headers(${name}_test REUSE_FROM edl_precompiled_test)
  # Debian's gRPC is not built for the thread sanitizer, which would report races inside of gRPC.
  edl_links_grpc(grpc ${ARG_LINK})
  if(grpc AND EDL_SANITIZE STREQUAL "thread")
    return()
  endif()
  add_dependencies(unit_tests ${name}_test)
  add_test(NAME ${name} COMMAND ${name}_test)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
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
  target_precompile_headers(${name}_fuzz REUSE_FROM edl_precompiled)
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name}_fuzz PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                        "${CMAKE_BINARY_DIR}/fuzzers")
  add_dependencies(fuzzers ${name}_fuzz)
endfunction()
