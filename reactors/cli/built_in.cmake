# Puts manifests of deploy/ into a source file: the manager's, so that `doctor` knows its roles, and `doctor --pre` what is
# installed; and the rights that a runtime's kubeconfig needs. Sets MANAGER_MANIFESTS.
set(manifests_text "")
function(rw_embed name)
  set(text "")
  foreach(part ${ARGN})
    set(file ${CMAKE_SOURCE_DIR}/deploy/${part}.yaml)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} one)
    string(APPEND text "---\n${one}")
  endforeach()
  set(manifests_text "${manifests_text}extern const char* const ${name};\nconst char* const ${name} = R\"yaml(${text})yaml\";\n"
    PARENT_SCOPE)
endfunction()
rw_embed(rbac manager/rbac)
rw_embed(certificates manager/certificates)
rw_embed(gardener_certificates manager/gardener/certificates)
rw_embed(bootstrapper_rbac_signal manager/bootstrapper/rbac-signal)
rw_embed(bootstrapper_rbac_direct manager/bootstrapper/rbac-direct)
rw_embed(workload manager/network manager/service manager/deployment manager/disruption)
rw_embed(definitions crds/operator.kyma-project.io_watchers crds/operator.kyma-project.io_runtimebootstrappers
  crds/operator.kyma-project.io_runtimerollouts)
rw_embed(runtime_rights manager/runtimes/rights)
set(MANAGER_MANIFESTS ${CMAKE_CURRENT_BINARY_DIR}/manager_manifests.cpp)
file(CONFIGURE OUTPUT ${MANAGER_MANIFESTS} CONTENT "namespace rw::cli::manager_manifests {
@manifests_text@}  // namespace rw::cli::manager_manifests
" @ONLY)
