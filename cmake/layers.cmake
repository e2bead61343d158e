# The layers and the edges between them, bottom first: "module: what it may use". Edges are transitive downwards.
# Link edges are made from this table, and tests/tidy scans the #include lines against it.
set(TUTTI_LAYERS
  "base:"
  "kernel:base"
  "schedule:base"
  "transport:base"
  "engine:schedule,transport,kernel"
  "compress:base,kernel"
  "exchange:engine,compress"
  "gradient:exchange"
  "model:base,kernel"
  "data:base,kernel"
  "train:gradient,model,data"
  "bench:engine"
  "cuda:base,compress"
  "tools:train,bench,cuda")

function(tutti_layer_edges layer out)
  foreach(row IN LISTS TUTTI_LAYERS)
    if(row MATCHES "^${layer}:(.*)$")
      string(REPLACE "," ";" edges "${CMAKE_MATCH_1}")
      set(${out} "${edges}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "layer '${layer}' has no row in cmake/layers.cmake")
endfunction()

# tutti_layer(name SOURCES … [LIBRARIES …]): a static library tutti_<name>, linked to the layers that it may use.
# LIBRARIES are outside packages; their headers stay private to the layer's own sources.
function(tutti_layer layer)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(tutti_${layer} STATIC ${arg_SOURCES})
  target_include_directories(tutti_${layer} PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(tutti_${layer} PUBLIC fmt::fmt Threads::Threads PRIVATE tutti_warnings ${arg_LIBRARIES})
  tutti_layer_edges(${layer} edges)
  foreach(edge IN LISTS edges)
    target_link_libraries(tutti_${layer} PUBLIC tutti_${edge})
  endforeach()
endfunction()

# The named layers and all below them: what goes whole into the shared library.
function(tutti_closure out)
  set(todo ${ARGN})
  set(seen "")
  while(todo)
    list(POP_FRONT todo layer)
    if(NOT layer IN_LIST seen)
      list(APPEND seen ${layer})
      tutti_layer_edges(${layer} edges)
      list(APPEND todo ${edges})
    endif()
  endwhile()
  set(${out} "${seen}" PARENT_SCOPE)
endfunction()
