# Puts page.html into a source file, so that the binary needs no files when it runs. Sets ADMIN_PAGE.
set(file ${CMAKE_CURRENT_SOURCE_DIR}/admin/page.html)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
file(READ ${file} admin_html)
set(ADMIN_PAGE ${CMAKE_CURRENT_BINARY_DIR}/admin_page.cpp)
file(CONFIGURE OUTPUT ${ADMIN_PAGE} CONTENT "#include <string_view>
namespace rw::admin {
extern const std::string_view page_html;
const std::string_view page_html = R\"page(@admin_html@)page\";
}  // namespace rw::admin
" @ONLY)
