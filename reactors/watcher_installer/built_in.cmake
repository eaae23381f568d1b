# Puts deploy/skr/*.yaml into a source file, so that the binary needs no files when it runs. Sets SKR_MANIFESTS.
file(GLOB skr_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/deploy/skr/*.yaml)
list(SORT skr_files)
set(skr_text "")
foreach(file ${skr_files})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} one)
  string(APPEND skr_text "---\n${one}")
endforeach()
set(SKR_MANIFESTS ${CMAKE_CURRENT_BINARY_DIR}/skr_manifests.cpp)
file(CONFIGURE OUTPUT ${SKR_MANIFESTS} CONTENT "namespace rw::watcher_installer {
extern const char* const built_in_manifests;
const char* const built_in_manifests = R\"skr(@skr_text@)skr\";
}  // namespace rw::watcher_installer
" @ONLY)
