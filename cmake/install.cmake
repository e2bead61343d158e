# The shared library for other programs: the layers up to the engine, whole, with everything hidden that no public header declares.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

tutti_closure(tutti_library_layers gradient)
add_library(tutti SHARED ${PROJECT_SOURCE_DIR}/src/engine/library.cpp)
add_library(tutti::tutti ALIAS tutti)
set_target_properties(tutti PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                      VERIFY_INTERFACE_HEADER_SETS ON)
target_compile_features(tutti PUBLIC cxx_std_20)
target_link_libraries(tutti PRIVATE tutti_warnings)
list(TRANSFORM tutti_library_layers PREPEND tutti_)
target_link_libraries(tutti PRIVATE ${tutti_library_layers})
list(JOIN tutti_library_layers "," whole)
set_property(TARGET tutti PROPERTY LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${whole}")
target_sources(tutti PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES
  ${PROJECT_SOURCE_DIR}/include/tutti/buffer.hpp ${PROJECT_SOURCE_DIR}/include/tutti/communicator.hpp ${PROJECT_SOURCE_DIR}/include/tutti/error.hpp ${PROJECT_SOURCE_DIR}/include/tutti/reducer.hpp
  ${PROJECT_SOURCE_DIR}/include/tutti/export.hpp ${PROJECT_SOURCE_DIR}/include/tutti/session.hpp
  ${PROJECT_SOURCE_DIR}/include/tutti/tutti.hpp ${PROJECT_SOURCE_DIR}/include/tutti/types.hpp
  ${PROJECT_SOURCE_DIR}/include/tutti/version.hpp)

set(tutti_package ${CMAKE_INSTALL_LIBDIR}/cmake/tutti)
install(TARGETS tutti EXPORT tuttiTargets FILE_SET HEADERS)
install(EXPORT tuttiTargets NAMESPACE tutti:: DESTINATION ${tutti_package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tuttiConfig.cmake.in ${PROJECT_BINARY_DIR}/tuttiConfig.cmake
                              INSTALL_DESTINATION ${tutti_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tuttiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tuttiConfig.cmake ${PROJECT_BINARY_DIR}/tuttiConfigVersion.cmake DESTINATION ${tutti_package})
file(RELATIVE_PATH TUTTI_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)  # the installed tree may move
configure_file(${PROJECT_SOURCE_DIR}/cmake/tutti.pc.in ${PROJECT_BINARY_DIR}/tutti.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tutti.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tutti)
if(TARGET tutti_program)
  install(TARGETS tutti_program)
  install(DIRECTORY tools/examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tutti/examples)
endif()
