# Puts the definitions of deploy/crds and deploy/dev, the sample Watcher, and the sample of what the Runtime Bootstrapper
# is configured from into a source file, so that `runtime-watcher-dev dev` needs no files. Sets DEV_MANIFESTS.
file(GLOB dev_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/deploy/crds/*.yaml ${CMAKE_SOURCE_DIR}/deploy/dev/*.yaml)
list(SORT dev_files)
set(dev_definitions "")
foreach(file ${dev_files})
  file(READ ${file} one)
  string(APPEND dev_definitions "---\n${one}")
endforeach()
file(READ ${CMAKE_SOURCE_DIR}/deploy/samples/watcher.yaml dev_watcher)
file(READ ${CMAKE_SOURCE_DIR}/deploy/samples/bootstrapper-sources.yaml dev_bootstrapper_sources)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${dev_files}
  ${CMAKE_SOURCE_DIR}/deploy/samples/watcher.yaml ${CMAKE_SOURCE_DIR}/deploy/samples/bootstrapper-sources.yaml)
set(DEV_MANIFESTS ${CMAKE_CURRENT_BINARY_DIR}/dev_manifests.cpp)
file(CONFIGURE OUTPUT ${DEV_MANIFESTS} CONTENT "namespace rw::dev {
extern const char* const built_in_definitions;
const char* const built_in_definitions = R\"dev(@dev_definitions@)dev\";
extern const char* const built_in_watcher;
const char* const built_in_watcher = R\"dev(@dev_watcher@)dev\";
extern const char* const built_in_bootstrapper_sources;
const char* const built_in_bootstrapper_sources = R\"dev(@dev_bootstrapper_sources@)dev\";
}  // namespace rw::dev
" @ONLY)
