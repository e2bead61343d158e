# NCCL's header. The library itself is loaded at run time and never linked, so that programs start where it is not installed.
# Looks in NCCL_ROOT (variable or environment), beside the CUDA toolkit and in the system's folders.
# Sets NCCL_FOUND, NCCL_INCLUDE_DIR, NCCL_VERSION and makes the target NCCL::headers.
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${NCCL_ROOT} $ENV{NCCL_ROOT} ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
mark_as_advanced(NCCL_INCLUDE_DIR)
if(NCCL_INCLUDE_DIR)
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h nccl_lines REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  list(TRANSFORM nccl_lines REPLACE "^#define NCCL_[A-Z]+ +([0-9]+).*" "\\1")
  list(JOIN nccl_lines "." NCCL_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
if(NCCL_FOUND AND NOT TARGET NCCL::headers)
  add_library(NCCL::headers INTERFACE IMPORTED)
  set_target_properties(NCCL::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR}")
endif()
