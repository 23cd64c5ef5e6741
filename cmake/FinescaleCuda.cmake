# Decides whether the CUDA backend is built. Sets FINESCALE_WITH_CUDA; nothing else needs a CUDA toolkit.
set(FINESCALE_WITH_CUDA OFF)
if(NOT FINESCALE_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  set(CMAKE_CUDA_ARCHITECTURES OFF)  # set per target: CMake 3.25 refuses names like 100f here
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(FINESCALE_WITH_CUDA ON)
  elseif(FINESCALE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "FINESCALE_CUDA=ON, but no nvcc was found: set CMAKE_CUDA_COMPILER")
  else()
    message(STATUS "finescale: no nvcc found, the CUDA backend is not built")
  endif()
endif()

# finescale_cuda_kernels(<name> ARCHITECTURES <90a ...> SOURCES <files>): .cu files of the library, compiled to machine code
# for these architectures and no others. The arithmetic is the contract's: IEEE operations, no contraction, no flushing.
# Several architectures in one object are for bodies that do not depend on the architecture.
function(finescale_cuda_kernels name)
  cmake_parse_arguments(ARG "" "" "ARCHITECTURES;SOURCES" ${ARGN})
  list(TRANSFORM ARG_ARCHITECTURES APPEND "-real")
  add_library(${name} OBJECT ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES
    CUDA_ARCHITECTURES "${ARG_ARCHITECTURES}"
    CUDA_RUNTIME_LIBRARY Static
    POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${name} PRIVATE
    -std=c++20  # CMake 3.25 does not know this dialect of nvcc
    --fmad=false -ftz=false -prec-div=true -prec-sqrt=true
    "SHELL:-Xcompiler=-ffp-contract=off,-fno-rtti,-Wall,-Wextra")
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
  target_sources(finescale PRIVATE $<TARGET_OBJECTS:${name}>)
endfunction()
