#include "use.hpp"
#include <rw/tls/certificate.hpp>
#include <rw/tls/error.hpp>
#include <rw/tls/issuer.hpp>
#include <rw/tls/key_memory.hpp>
#include <rw/tls/material.hpp>
#include <rw/tls/reload.hpp>
#include <rw/tls/stream.hpp>
#include <rw/tls/transport.hpp>

namespace tls = rw::tls;

void use_tls() {
  const tls::key_text secret("a key");
  EXPECT(secret.size() == 5);
  const auto ca = tls::issuer::create({.common_name = "ca"});
  EXPECT(ca.has_value());
  EXPECT(!tls::wipe_freed_keys());  // OpenSSL is in use
  const auto pair =
      ca->issue({.common_name = "host", .dns_names = {"localhost"}, .server_auth = true});
  EXPECT(pair.has_value());
  const auto leaf = tls::certificate::from_pem(pair->certificate);
  EXPECT(leaf.has_value() && leaf->common_name() == "host");
  const auto credentials =
      tls::credentials::from_text({pair->certificate, pair->key, ca->certificate_pem()});
  EXPECT(credentials.has_value());
  EXPECT(tls::make_server_transport(*credentials).has_value());
  EXPECT(tls::make_client_transport(*credentials, {.server_name = "localhost"}).has_value());
  EXPECT(tls::certificate::from_pem("no PEM").error() == tls::error::not_pem);

  boost::asio::io_context context;
  rw::core::logger log(rw::core::log_level::error, [](std::string_view) {});
  tls::reloader reloader(context.get_executor(), *credentials, {.ca = "/does/not/exist"}, log);
  reloader.check();
  EXPECT(reloader.failures() == 1 && reloader.successes() == 0);

  boost::asio::ip::tcp::socket socket(context);
  EXPECT((std::is_base_of_v<rw::core::stream, tls::stream>));
}
