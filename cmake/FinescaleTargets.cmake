# Settings that every target of the project shares. Nothing here is global: each target asks for what it needs.

# The arithmetic is the contract's: one rounding per operation, no contraction, no fast-math. FMA is written where wanted.
function(finescale_compile_settings target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off -fno-fast-math -Wall -Wextra -Wshadow>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${FINESCALE_WARNINGS_AS_ERRORS}>>:-Werror>)
  foreach(sanitizer IN LISTS FINESCALE_SANITIZE)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${sanitizer} -fno-omit-frame-pointer -fno-sanitize-recover=all>)
    target_link_options(${target} PUBLIC -fsanitize=${sanitizer})
  endforeach()
  if("undefined" IN_LIST FINESCALE_SANITIZE)  # the library has no RTTI, which this check reads
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=vptr>)
  endif()
endfunction()

function(finescale_library_settings target)
  finescale_compile_settings(${target})
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
    PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
endfunction()

# finescale_isa_sources(FLAGS <compiler flags> SOURCES <files>): files of the library compiled for one instruction set.
function(finescale_isa_sources)
  cmake_parse_arguments(ARG "" "" "FLAGS;SOURCES" ${ARGN})
  foreach(source IN LISTS ARG_SOURCES)
    set(path "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
    target_sources(finescale PRIVATE "${path}")
    set_source_files_properties("${path}" TARGET_DIRECTORY finescale PROPERTIES COMPILE_OPTIONS "${ARG_FLAGS}")
  endforeach()
endfunction()

# finescale_add_test(<name> SOURCES <files> [LIBRARIES <targets>]): one GoogleTest program; each test is a ctest test.
function(finescale_add_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  finescale_compile_settings(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(${name} PRIVATE finescale::finescale GTest::gtest_main GTest::gmock ${ARG_LIBRARIES})
  target_compile_definitions(${name} PRIVATE FINESCALE_TEST_DIRECTORY="${PROJECT_SOURCE_DIR}/tests")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 LABELS ${name})
endfunction()
