# Puts the roles of deploy/manager into a source file, so that `doctor` knows which rights the manager needs. Sets
# MANAGER_ROLES.
set(roles_text "")
foreach(part rbac certificates gardener/certificates bootstrapper/rbac-signal bootstrapper/rbac-direct)
  set(file ${CMAKE_SOURCE_DIR}/deploy/manager/${part}.yaml)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} one)
  string(MAKE_C_IDENTIFIER ${part} name)
  string(APPEND roles_text "extern const char* const ${name};\nconst char* const ${name} = R\"roles(${one})roles\";\n")
endforeach()
set(MANAGER_ROLES ${CMAKE_CURRENT_BINARY_DIR}/manager_roles.cpp)
file(CONFIGURE OUTPUT ${MANAGER_ROLES} CONTENT "namespace rw::cli::manager_roles {
@roles_text@}  // namespace rw::cli::manager_roles
" @ONLY)
