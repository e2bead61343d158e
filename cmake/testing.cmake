# tutti_test(name SOURCES … LAYERS …)            a Catch2 program in one process: ctest entry <name>
# tutti_mpi_test(name SOURCES … LAYERS … RANKS …) the same program under mpirun: ctest entries <name>.p1, <name>.p2, …
add_library(tutti_catch_main STATIC ${PROJECT_SOURCE_DIR}/tests/support/main.cpp)
target_include_directories(tutti_catch_main PUBLIC ${PROJECT_SOURCE_DIR}/tests)
if(Catch2_VERSION VERSION_GREATER_EQUAL 3)
  target_link_libraries(tutti_catch_main PUBLIC Catch2::Catch2)
  target_compile_definitions(tutti_catch_main PUBLIC TUTTI_CATCH3=1)
else()
  target_link_libraries(tutti_catch_main PUBLIC Catch2::Catch2)
endif()
target_link_libraries(tutti_catch_main PUBLIC tutti_base)

# The same under mpirun: reports of all failing ranks, and a watchdog.
add_library(tutti_catch_mpi_main STATIC ${PROJECT_SOURCE_DIR}/tests/support/mpi_main.cpp)
target_link_libraries(tutti_catch_mpi_main PUBLIC tutti_base Catch2::Catch2 PRIVATE MPI::MPI_CXX tutti_warnings)
target_include_directories(tutti_catch_mpi_main PUBLIC ${PROJECT_SOURCE_DIR}/tests)
target_compile_definitions(tutti_catch_mpi_main PUBLIC $<$<VERSION_GREATER_EQUAL:${Catch2_VERSION},3>:TUTTI_CATCH3=1>)

set(TUTTI_MPI_FLAGS "")
set(TUTTI_MPI_ENVIRONMENT "TUTTI_PROFILE=off")
if(TUTTI_MPI_FLAVOUR STREQUAL "openmpi")
  set(TUTTI_MPI_FLAGS --oversubscribe)
  set(TUTTI_MPI_ENVIRONMENT "TUTTI_PROFILE=off" "OMPI_ALLOW_RUN_AS_ROOT=1" "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
      "OMPI_MCA_mpi_yield_when_idle=1" "OMPI_MCA_rmaps_base_oversubscribe=1" "OMPI_MCA_hwloc_base_binding_policy=none"
      "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe")
endif()

function(tutti_test_program name)
  cmake_parse_arguments(arg "" "MAIN" "SOURCES;LAYERS;LIBRARIES;RANKS;TIMEOUT;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  if(NOT arg_MAIN)
    set(arg_MAIN tutti_catch_main)
  endif()
  target_link_libraries(${name} PRIVATE ${arg_MAIN} tutti_warnings ${arg_LIBRARIES})
  foreach(layer IN LISTS arg_LAYERS)
    target_link_libraries(${name} PRIVATE tutti_${layer})
  endforeach()
  target_compile_definitions(${name} PRIVATE TUTTI_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endfunction()

function(tutti_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "LABELS" ${ARGN})
  tutti_test_program(${name} ${arg_UNPARSED_ARGUMENTS})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "unit;${arg_LABELS}")
endfunction()

# Three limits, the nearest first: the watchdog in the process, timeout around mpiexec, ctest's own.
function(tutti_mpi_command out ranks limit)
  set(${out} timeout --signal=TERM --kill-after=5 ${limit} ${MPIEXEC_EXECUTABLE} ${TUTTI_MPI_FLAGS} ${MPIEXEC_NUMPROC_FLAG} ${ranks}
      PARENT_SCOPE)
endfunction()

function(tutti_mpi_entry entry ranks timeout)
  tutti_mpi_command(launch ${ranks} ${timeout})
  math(EXPR outer "${timeout} + 15")
  math(EXPR watchdog "${timeout} - 10")
  add_test(NAME ${entry}.p${ranks} COMMAND ${launch} ${ARGN})
  set_tests_properties(${entry}.p${ranks} PROPERTIES TIMEOUT ${outer} LABELS mpi PROCESSORS ${ranks}
                       ENVIRONMENT "${TUTTI_MPI_ENVIRONMENT};TUTTI_TEST_LIMIT=${watchdog}" RUN_SERIAL TRUE)
endfunction()

function(tutti_mpi_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "RANKS" ${ARGN})
  tutti_test_program(${name} MAIN tutti_catch_mpi_main ${arg_UNPARSED_ARGUMENTS})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(NOT arg_RANKS)
    set(arg_RANKS 1 2 3 4 5 8)
  endif()
  foreach(ranks IN LISTS arg_RANKS)
    tutti_mpi_entry(${name} ${ranks} ${arg_TIMEOUT} $<TARGET_FILE:${name}>)
  endforeach()
endfunction()
