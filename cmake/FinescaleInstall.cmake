# install() and the package files of find_package(finescale).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS finescale EXPORT finescaleTargets)
install(DIRECTORY include/finescale DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT finescaleTargets NAMESPACE finescale:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/finescale)
configure_package_config_file(cmake/finescaleConfig.cmake.in "${PROJECT_BINARY_DIR}/finescaleConfig.cmake"
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/finescale)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/finescaleConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/finescaleConfig.cmake" "${PROJECT_BINARY_DIR}/finescaleConfigVersion.cmake"
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/finescale)
