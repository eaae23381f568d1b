#include "rw/reactors/cli/certs.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/shell_word.hpp"
#include "rw/tls/certificate.hpp"
#include "rw/tls/issuer.hpp"

#include <boost/asio/ip/address.hpp>

#include <filesystem>

namespace rw::cli {
namespace {

tls::key_type key_type(const std::string& name) {
  if (name == "rsa2048") return tls::key_type::rsa_2048;
  if (name == "rsa4096") return tls::key_type::rsa_4096;
  return tls::key_type::ecdsa_p256;
}

void add_name(const std::string& san, tls::certificate_request& to) {
  const auto colon = san.find(':');
  const auto kind = san.substr(0, colon);
  const auto value = colon == std::string::npos ? "" : san.substr(colon + 1);
  if (kind == "dns" && !value.empty()) {
    to.dns_names.push_back(value);
  } else if (kind == "ip" && !value.empty()) {
    to.ips.push_back(value);
  } else if (kind == "uri" && !value.empty()) {
    to.uris.push_back(value);
  } else {
    throw setting_error("--san must be dns:HOST, ip:ADDRESS or uri:URI, not: " + san);
  }
}

/// Returns a line about each of the two files.
std::string write(const certs_settings& settings, const std::string& name, std::string_view role,
                  const tls::key_pair& pair) {
  const auto written = tls::write_files(settings.dir, name, pair);
  if (written.has_error()) throw setting_error("certs: " + written.error().message());
  const auto made = tls::certificate::from_pem(pair.certificate);
  if (!made) throw setting_error("certs: " + made.error().message());
  const auto path = (std::filesystem::path(settings.dir) / name).string();
  return path + ".crt: certificate of " + std::string(role) + " " + made->common_name() +
         ", valid until " + k8s::format_time(made->not_after()) + " (" +
         std::to_string(settings.days) + " days)\n" + path + ".key: its private key (" +
         settings.key + "), to be kept secret\n";
}

}  // namespace

std::string make_certificates(const certs_settings& settings) {
  using role = certs_settings::role;
  tls::certificate_request request;
  request.common_name = settings.common_name.empty() ? settings.name : settings.common_name;
  request.key = key_type(settings.key);
  request.validity = std::chrono::hours(24) * settings.days;
  if (settings.issues == role::ca) {
    if (request.common_name.empty()) request.common_name = "runtime-watcher CA";
    const auto key = (std::filesystem::path(settings.dir) / "ca.key").string();
    if (std::filesystem::exists(std::filesystem::symlink_status(key))) {
      throw setting_error("certs ca: " + key +
                          " exists, and what it has signed would not be trusted by a new CA: "
                          "remove the file first, or name another directory with --dir");
    }
    return write(settings, "ca", "the authority",
                 need(tls::issuer::create(request), "certs").own());
  }
  if (settings.issues == role::webhook && settings.sans.empty()) {
    throw setting_error(
        "certs webhook: without --san no API server accepts the certificate: give the names that "
        "it calls the webhook by, such as --san dns:skr-webhook.kyma-system.svc");
  }
  for (const auto& san : settings.sans) add_name(san, request);
  if (settings.issues == role::server && settings.sans.empty()) {
    // Clients check these names alone (RFC 9525, section 6.3).
    boost::system::error_code no_address;
    boost::asio::ip::make_address(settings.name, no_address);
    (no_address ? request.dns_names : request.ips).push_back(settings.name);
  }
  request.server_auth = settings.issues != role::client;
  request.client_auth = settings.issues != role::server;
  const std::filesystem::path dir(settings.dir);
  if (!std::filesystem::exists(dir / "ca.crt")) {
    throw setting_error("certs: there is no " + (dir / "ca.crt").string() +
                        ": make it first with runtime-watcher certs ca --dir " +
                        shell_word(settings.dir));
  }
  const auto certificate = need(tls::read_file((dir / "ca.crt").string()), "certs");
  const auto key = need(tls::read_key_file((dir / "ca.key").string()), "certs");
  const auto ca = need(tls::issuer::load({certificate, key}), "certs");
  const auto* const holder = settings.issues == role::webhook  ? "the webhook"
                             : settings.issues == role::server ? "the server"
                                                               : "the client";
  return write(settings, settings.name, holder, need(ca.issue(request), "certs"));
}

}  // namespace rw::cli
