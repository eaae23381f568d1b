#include "rw/reactors/cli/listening.hpp"

namespace rw::cli {

listener::listener_options listening_options(services& with, const listening_settings& from,
                                             std::string_view address_flag,
                                             std::unique_ptr<tls::reloader>& reloader) {
  listener::listener_options out;
  out.address = listening_address(from.address, address_flag);
  out.component = from.component;
  out.trusted_proxies = from.trusted_proxies;
  const tls::material_files files{from.tls_cert, from.tls_key, from.client_ca};
  if (files.ca.empty()) return out;
  auto loaded = need(tls::credentials::load(files), "--tls-cert, --tls-key, --client-ca");
  reloader = std::make_unique<tls::reloader>(with.executor, loaded, files, with.log);
  (from.tls_cert.empty() ? out.client_ca : out.tls) = std::move(loaded);
  return out;
}

}  // namespace rw::cli
