#include "rw/reactors/shared/issuer_kind.hpp"

namespace rw::certificates {

const k8s::resource_type& certificates_type(issuer_kind of) {
  static const k8s::resource_type cert_manager{
      {"cert-manager.io", "v1", "Certificate"}, "certificates", true};
  static const k8s::resource_type gardener{
      {"cert.gardener.cloud", "v1alpha1", "Certificate"}, "certificates", true};
  return of == issuer_kind::cert_manager ? cert_manager : gardener;
}

const k8s::resource_type& issuers_type(issuer_kind of) {
  static const k8s::resource_type cert_manager{
      {"cert-manager.io", "v1", "Issuer"}, "issuers", true};
  static const k8s::resource_type gardener{
      {"cert.gardener.cloud", "v1alpha1", "Issuer"}, "issuers", true};
  return of == issuer_kind::cert_manager ? cert_manager : gardener;
}

}  // namespace rw::certificates
