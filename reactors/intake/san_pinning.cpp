#include "rw/reactors/intake/san_pinning.hpp"

#include <algorithm>
#include <utility>

namespace rw::listener {
namespace {

bool names(const tls::certificate& certificate, const std::string& domain) {
  const auto same_host = [&](const std::string& name) { return http::iequals(name, domain); };
  return std::ranges::any_of(certificate.dns_names(), same_host) ||
         std::ranges::find(certificate.uris(), domain) != certificate.uris().end() ||
         std::ranges::find(certificate.ips(), domain) != certificate.ips().end();
}

}  // namespace

verify_function pin_san(domain_source domains) {
  return [domains = std::move(domains)](const http::request&, const watch_event&,
                                        const event_sender& from) {
    const auto domain = domains(from.runtime_id);
    return domain && !domain->empty() && names(from.certificate, *domain);
  };
}

}  // namespace rw::listener
