# CUDA and NCCL, each AUTO (use it if it is there), ON (it must be there) or OFF. The runtime is linked statically and the driver
# never: the program starts on machines without either.
foreach(option TUTTI_CUDA TUTTI_NCCL)
  if(NOT ${option} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${option}=${${option}}: expected AUTO, ON or OFF")
  endif()
endforeach()
set(TUTTI_HAVE_CUDA 0)
set(TUTTI_HAVE_NCCL 0)
set(TUTTI_CUDA_SAYS "no (TUTTI_CUDA=OFF)")
set(TUTTI_NCCL_SAYS "no (TUTTI_NCCL=OFF)")
if(NOT TUTTI_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit 12 QUIET)
  if(CUDAToolkit_FOUND AND TARGET CUDA::cudart_static AND CUDAToolkit_NVCC_EXECUTABLE)
    set(TUTTI_HAVE_CUDA 1)
    set(TUTTI_CUDA_SAYS "yes (${CUDAToolkit_VERSION}, runtime linked statically)")
  elseif(TUTTI_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TUTTI_CUDA=ON, but there is no CUDA toolkit (12 or newer): install it and put nvcc on the PATH, or use TUTTI_CUDA=OFF")
  else()
    set(TUTTI_CUDA_SAYS "no (no CUDA toolkit 12 or newer found)")
  endif()
endif()
if(NOT TUTTI_NCCL STREQUAL "OFF")
  find_package(NCCL 2 QUIET)
  if(NCCL_FOUND AND TUTTI_HAVE_CUDA)
    set(TUTTI_HAVE_NCCL 1)
    set(TUTTI_NCCL_SAYS "yes (header ${NCCL_VERSION}, library loaded at run time)")
  elseif(TUTTI_NCCL STREQUAL "ON")
    message(FATAL_ERROR "TUTTI_NCCL=ON, but nccl.h or CUDA was not found: install libnccl-dev, or set NCCL_ROOT, or use TUTTI_NCCL=OFF")
  elseif(NCCL_FOUND)
    set(TUTTI_NCCL_SAYS "no (needs CUDA)")
  else()
    set(TUTTI_NCCL_SAYS "no (nccl.h not found)")
  endif()
endif()

# The revision is that of the last configure: good enough to tell builds apart, and no build step of its own.
set(TUTTI_REVISION "")
find_package(Git QUIET)
if(Git_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE TUTTI_REVISION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/config.hpp.in ${PROJECT_BINARY_DIR}/generated/tutti_config.hpp @ONLY)

set(TUTTI_CUDA_ARCHITECTURES "80;90;100;120" CACHE STRING "Compute capabilities that kernels are compiled for; for the last one as PTX, too")

# tutti_cuda_sources(target files…): compiled by nvcc, with no contraction of products and sums, so that GPUs compute what CPUs do. What
# ptxas says of registers and memory lies beside each object: tests/cuda holds it against a budget.
function(tutti_cuda_sources target)
  set(flags -std=c++20 -O3 --fmad=false --expt-relaxed-constexpr --threads 2 -Xcompiler=-fPIC -Xptxas=-v,-warn-spills,-warn-lmem-usage
      -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include)
  foreach(architecture IN LISTS TUTTI_CUDA_ARCHITECTURES)
    list(APPEND flags -gencode=arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(GET TUTTI_CUDA_ARCHITECTURES -1 newest)
  list(APPEND flags -gencode=arch=compute_${newest},code=compute_${newest})
  foreach(file IN LISTS ARGN)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${file}.o)
    add_custom_command(OUTPUT ${object} ${object}.ptxas
      COMMAND ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh ${object}.ptxas ${CUDAToolkit_NVCC_EXECUTABLE} ${flags} -MD -MF ${object}.d -MT ${object}
              -c ${CMAKE_CURRENT_SOURCE_DIR}/${file} -o ${object}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh DEPFILE ${object}.d
      COMMENT "Building CUDA object ${file}" VERBATIM)
    target_sources(${target} PRIVATE ${object})
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  endforeach()
endfunction()
