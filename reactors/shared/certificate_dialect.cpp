#include "reactors/shared/certificate_dialect.hpp"

namespace rw::certificates {

std::optional<dialect> parse_dialect(std::string_view text) noexcept {
  if (text == "cert-manager") return dialect::cert_manager;
  if (text == "gardener") return dialect::gardener;
  return std::nullopt;
}

const k8s::resource_type& certificates_type(dialect of) {
  static const k8s::resource_type cert_manager{
      {"cert-manager.io", "v1", "Certificate"}, "certificates", true};
  static const k8s::resource_type gardener{
      {"cert.gardener.cloud", "v1alpha1", "Certificate"}, "certificates", true};
  return of == dialect::cert_manager ? cert_manager : gardener;
}

}  // namespace rw::certificates
