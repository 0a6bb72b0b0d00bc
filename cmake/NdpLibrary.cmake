# ndp_library(NAME <room> LAYER <n> [COLD] SRCS ... HDRS ... DEPS <room>... LINK <third party>... TESTS ...
#             APART <source>...)
#
# A room is one static library `ndp_<room>` (alias ndp::<room>). It may use only rooms of a lower
# layer, and include only headers of rooms it names in DEPS: both are refused here, at configure
# time. Tests of a room are one program, `<room>_test`; TEST_DEPS may name further rooms. COLD: made
# for size. APART: sources that are never compiled together with others (ndp_unity): commands, each
# with its own `Options` and `Run`.

# Refuses an #include of a room that is neither `room` itself nor one of the rooms in ARGN.
function(ndp_check_includes room file)
  file(STRINGS ${file} lines REGEX "^#include \"[a-z_]+/")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include \"([a-z_]+)/.*" "\\1" used "${line}")
    if(NOT used STREQUAL room AND NOT used IN_LIST ARGN)
      message(FATAL_ERROR "${file}: room '${room}' includes '${used}/' but does not list it in DEPS")
    endif()
  endforeach()
endfunction()

# The standard headers and fmt are half of a file's compile time, gMock most of a test's: each is
# precompiled once. A build without (NDP_PCH=OFF, as tidy's) shows includes that are missing.
option(NDP_PCH "Use precompiled headers" ON)
set(ndp_pch_headers <algorithm> <chrono> <expected> <filesystem> <functional> <map> <memory>
    <optional> <set> <span> <string> <string_view> <vector> <fmt/format.h>)
if(NDP_PCH)
  file(WRITE ${CMAKE_BINARY_DIR}/pch.cc "int NdpPch();\nint NdpPch() { return 0; }\n")
  add_library(ndp_pch STATIC ${CMAKE_BINARY_DIR}/pch.cc)
  target_precompile_headers(ndp_pch PRIVATE ${ndp_pch_headers})
  target_link_libraries(ndp_pch PRIVATE ndp_options)
endif()
if(NDP_TESTS AND NDP_PCH)
  file(WRITE ${CMAKE_BINARY_DIR}/test_pch.cc "int NdpTestPch();\nint NdpTestPch() { return 0; }\n")
  add_executable(ndp_test_pch ${CMAKE_BINARY_DIR}/test_pch.cc)
  target_precompile_headers(ndp_test_pch PRIVATE ${ndp_pch_headers} <gmock/gmock.h> <gtest/gtest.h>)
  target_link_libraries(ndp_test_pch PRIVATE ndp_options GTest::gmock GTest::gtest_main)
endif()

# Most of a file's compile time goes into what it includes and, in tests, into matchers, which each
# would instantiate for itself: several files at a time take half as long.
option(NDP_UNITY "Compile several files of a room at a time" ON)

# Has `target` compiled that way; the files in ARGN stay alone.
function(ndp_unity target)
  if(NOT NDP_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  # Of a class in a .cc file that uses the file's own types: meant for headers.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:$<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>>)
endfunction()

function(ndp_library)
  cmake_parse_arguments(A "COLD" "NAME;LAYER" "SRCS;HDRS;DEPS;LINK;TESTS;TEST_DEPS;TEST_LINK;APART" ${ARGN})
  set_property(GLOBAL PROPERTY NDP_LAYER_${A_NAME} ${A_LAYER})
  foreach(dep IN LISTS A_DEPS)
    get_property(dep_layer GLOBAL PROPERTY NDP_LAYER_${dep})
    if(dep_layer STREQUAL "")
      message(FATAL_ERROR "room '${A_NAME}' depends on unknown room '${dep}'")
    endif()
    if(NOT dep_layer LESS A_LAYER)
      message(FATAL_ERROR
        "room '${A_NAME}' (layer ${A_LAYER}) may not use room '${dep}' (layer ${dep_layer})")
    endif()
    list(APPEND dep_targets ndp::${dep})
  endforeach()
  foreach(file IN LISTS A_SRCS A_HDRS)
    ndp_check_includes(${A_NAME} ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${A_DEPS})
  endforeach()

  if(A_SRCS)
    add_library(ndp_${A_NAME} STATIC ${A_SRCS} ${A_HDRS})
    set(scope PUBLIC)
    # base compiles fmt and spdlog themselves, with definitions of their own.
    # A room made for size has another __OPTIMIZE_SIZE__ than the precompiled header.
    if(NDP_PCH AND NOT A_NAME STREQUAL base AND NOT (A_COLD AND CMAKE_BUILD_TYPE STREQUAL Release))
      target_precompile_headers(ndp_${A_NAME} REUSE_FROM ndp_pch)
    endif()
    ndp_unity(ndp_${A_NAME} ${A_APART})
    target_link_libraries(ndp_${A_NAME} PRIVATE ${A_LINK})
    if(A_COLD)
      target_compile_options(ndp_${A_NAME} PRIVATE $<$<CONFIG:Release>:-Os>)
    endif()
  else()
    add_library(ndp_${A_NAME} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(ndp::${A_NAME} ALIAS ndp_${A_NAME})
  # A room's headers are included as "room/header.h" from its parent folder.
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR PARENT_PATH parent)
  target_include_directories(ndp_${A_NAME} ${scope} ${parent})
  target_link_libraries(ndp_${A_NAME} ${scope} ${dep_targets} ndp_options)

  if(A_TESTS AND NDP_TESTS)
    foreach(file IN LISTS A_TESTS)
      ndp_check_includes(${A_NAME} ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${A_DEPS} ${A_TEST_DEPS} testing)
    endforeach()
    set(test_targets ${A_TEST_DEPS})
    list(TRANSFORM test_targets PREPEND ndp::)
    add_executable(${A_NAME}_test ${A_TESTS})
    # Files of testing/ stay files: they are no tests.
    set(shared ${A_TESTS})
    list(FILTER shared INCLUDE REGEX "/testing/")
    ndp_unity(${A_NAME}_test ${shared})
    if(NDP_PCH)
      target_precompile_headers(${A_NAME}_test REUSE_FROM ndp_test_pch)
    endif()
    target_include_directories(${A_NAME}_test PRIVATE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${A_NAME}_test PRIVATE
      ndp::${A_NAME} ${test_targets} ${A_LINK} ${A_TEST_LINK} ndp_options GTest::gmock GTest::gtest_main)
    include(GoogleTest)
    gtest_discover_tests(${A_NAME}_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      PROPERTIES TIMEOUT 120 LABELS unit)
  endif()
endfunction()
