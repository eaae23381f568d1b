#include "rw/k8s/client/authenticator.hpp"

#include "rw/core/network.hpp"
#include "rw/core/text.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/tls/certificate.hpp"
#include "rw/tls/files.hpp"
#include "rw/tls/transport.hpp"

#include <boost/system/system_error.hpp>

#include <utility>

namespace rw::k8s {

namespace asio = boost::asio;

void throw_unusable(const config& settings, const std::string& error, errc code) {
  const auto from =
      settings.source.empty() ? std::string("API server ") + settings.server : settings.source;
  throw boost::system::system_error(make_error_code(code), from + ": " + error);
}

/// Hands each new connection to the transport of the moment. Streams keep what they need of it.
class authenticator::switched_transport final : public core::transport {
 public:
  std::unique_ptr<core::stream> wrap(asio::ip::tcp::socket socket) override {
    return current->wrap(std::move(socket));
  }

  std::shared_ptr<core::transport> current;
};

authenticator::authenticator(asio::any_io_executor executor, const config& configuration,
                             const std::string& host, bool tls,
                             const client_environment& environment,
                             std::function<void()> on_new_certificates)
    : executor_(std::move(executor)),
      configuration_(configuration),
      environment_(environment),
      server_name_(configuration.tls_server_name.empty() ? host : configuration.tls_server_name),
      tls_(tls),
      on_new_certificates_(std::move(on_new_certificates)),
      transport_(std::make_unique<switched_transport>()),
      plugin_done_(executor_),
      tasks_(executor_) {
  if (!core::is_field_value(configuration.token))
    throw_unusable(configuration, "the token has characters that no token has");
  if (!configuration.token.empty()) {
    authorization_ = "Bearer " + configuration.token;
  } else if (!configuration.username.empty()) {
    authorization_ =
        "Basic " + base64_encode(configuration.username + ":" + configuration.password);
  }
  if (!tls_) {
    transport_->current = core::network::of(executor_).make_plain();
    return;
  }
  if (const auto used = use_certificates(false); !used)
    throw_unusable(configuration, used.error().message());
}

authenticator::~authenticator() = default;

core::transport& authenticator::transport() noexcept {
  return *transport_;
}

/// The first time what the configuration brings along, and its files where it brings only names;
/// then what the files have become. A plugin's certificate wins.
tls::result<tls::material_text> authenticator::read_certificates(bool anew) const {
  tls::material_text text{configuration_.client_certificate, configuration_.client_key,
                          configuration_.ca};
  const auto wanted = [anew](const std::string& file, const std::string& has) {
    return anew || has.empty() ? file : std::string();
  };
  const auto read = tls::read_text(
      {wanted(configuration_.client_certificate_file, text.certificate),
       wanted(configuration_.client_key_file, text.key), wanted(configuration_.ca_file, text.ca)});
  if (!read) return read;
  if (!read->certificate.empty()) text.certificate = read->certificate;
  if (!read->key.empty()) text.key = read->key;
  if (!read->ca.empty()) text.ca = read->ca;
  if (!plugin_certificate_.empty()) {
    text.certificate = plugin_certificate_;
    text.key = plugin_key_;
  }
  return text;
}

tls::result<void> authenticator::use_certificates(bool anew) {
  const auto text = read_certificates(anew);
  if (!text) return text.error();
  return use(*text);
}

tls::result<std::unique_ptr<core::transport>> authenticator::make_transport(
    const tls::material_text& text) const {
  auto material = tls::material::none();
  if (!text.certificate.empty() || !text.key.empty() || !text.ca.empty()) {
    auto made =
        tls::material::from_text(text, {configuration_.client_certificate_file,
                                        configuration_.client_key_file, configuration_.ca_file});
    if (!made) return made.error();
    if (!made->damage().empty()) {
      environment_.log.warning(
          "the CA bundle of an API server is damaged, the certificates that can be read are in use",
          {{"server", configuration_.server}, {"error", made->damage()}});
    }
    material = std::move(*made);
  }
  // Older API servers, and what stands before newer ones, may end at TLS 1.2. Sessions are not
  // resumed, as client-go does not: each connection checks the server's certificate anew, and none
  // of thousands of clients keeps tickets.
  return tls::make_client_transport(
      std::make_shared<tls::credentials>(std::move(material)),
      {.server_name = server_name_,
       .least = tls::version::tls_1_2,
       .trust_system = true,
       .insecure_skip_verify = configuration_.insecure_skip_tls_verify,
       .resume_sessions = false});
}

tls::result<void> authenticator::use(const tls::material_text& text) {
  auto digest = text.digest();
  if (transport_->current && digest == certificates_) return {};
  auto made = make_transport(text);
  if (!made) return made.error();
  const bool first = !transport_->current;
  transport_->current = std::move(*made);
  certificates_ = std::move(digest);
  const auto shown = tls::certificate::from_pem(text.certificate);
  certificate_end_.reset();
  if (shown) certificate_end_ = shown->not_after();
  if (first) return {};
  ++generation_;
  on_new_certificates_();
  return {};
}

bool authenticator::certificate_expired() const {
  return certificate_end_ && environment_.clock.wall() > *certificate_end_;
}

void authenticator::set_authorization(std::string value) {
  if (value == authorization_) return;
  authorization_ = std::move(value);
  ++generation_;
}

bool authenticator::ready() {
  look_at_files();
  return !plugin_due() && (token_error_.empty() || !authorization_.empty());
}

asio::awaitable<std::optional<failure>> authenticator::prepare() {
  look_at_files();
  if (authorization_.empty() && !token_error_.empty()) {
    co_return failure{.code = errc::not_configured, .message = token_error_};
  }
  if (!plugin_due()) co_return std::nullopt;
  if (!std::exchange(plugin_running_, true)) tasks_.spawn(run_plugin());
  while (plugin_running_) {
    const bool woken = co_await plugin_done_.wait();
    if (!woken) co_return failure{.code = errc::shut_down};
  }
  co_return plugin_failed_;
}

/// As with kubectl, a token or user name that is configured wins.
bool authenticator::uses_plugin() const {
  return configuration_.exec && configuration_.token.empty() && configuration_.token_file.empty() &&
         configuration_.username.empty();
}

bool authenticator::plugin_due() const {
  if (!uses_plugin()) return false;
  return plugin_wanted_ || (plugin_expiry_ && environment_.clock.wall() >= *plugin_expiry_);
}

asio::awaitable<void> authenticator::run_plugin() {
  auto result =
      co_await run_process(executor_, environment_.watchdog, exec_request(configuration_));
  auto got = read_exec_result(configuration_, result);
  plugin_failed_.reset();
  if (got) {
    use_credential(std::move(*got));
  } else {
    plugin_failed_ = got.error();
  }
  if (plugin_failed_ && !closed_) {
    environment_.log.limited(
        log_limit_, core::log_level::warning, "the credential plugin gave no credential",
        {{"source", configuration_.source}, {"error", plugin_failed_->message}});
  }
  plugin_running_ = false;
  plugin_done_.wake_all();
}

void authenticator::use_credential(exec_credential got) {
  if (!got.certificate.empty() && tls_) {
    plugin_certificate_ = std::move(got.certificate);
    plugin_key_ = std::move(got.key);
    if (const auto used = use_certificates(true); !used) {
      plugin_failed_ =
          failure{.code = errc::not_configured,
                  .message = "credential plugin '" + configuration_.exec->command +
                             "' gave a certificate that cannot be used: " + used.error().message()};
      return;
    }
  }
  set_authorization(got.token.empty() ? "" : "Bearer " + got.token);
  ++generation_;  // even if it is the same: requests that went out before need not ask again
  plugin_wanted_ = false;
  plugin_expiry_ = got.expires;
}

void authenticator::look_at_files() {
  const auto now = environment_.watchdog->now();
  if (now == looked_) return;
  looked_ = now;
  if (!configuration_.token_file.empty() && token_stamp_.changed(configuration_.token_file))
    look_at_token();
  if (!tls_) return;
  const auto changed = [](file_stamp& stamp, const std::string& name) {
    return !name.empty() && stamp.changed(name);
  };
  // All three are looked at, or a change of two would be seen twice.
  const bool ca = changed(ca_stamp_, configuration_.ca_file);
  const bool certificate = changed(certificate_stamp_, configuration_.client_certificate_file);
  const bool key = changed(key_stamp_, configuration_.client_key_file);
  if (ca || certificate || key) look_at_certificates();
}

void authenticator::look_at_token() {
  const auto read = tls::read_file(configuration_.token_file);
  std::string error;
  if (!read) {
    error = read.error().message();
  } else {
    const auto token = core::trimmed(*read);
    if (token.empty()) {
      error = configuration_.token_file + ": the token file is empty";
    } else if (!core::is_field_value(token)) {
      error = configuration_.token_file + ": the token has characters that no token has";
    } else {
      set_authorization("Bearer " + std::string(token));
    }
  }
  if (!error.empty()) {
    environment_.log.limited(log_limit_, core::log_level::warning,
                             "cannot read the token; the old one, if any, stays in use",
                             {{"source", configuration_.source}, {"error", error}});
  }
  token_error_ = std::move(error);
}

void authenticator::look_at_certificates() {
  const auto result = use_certificates(true);
  if (result) return;
  environment_.log.limited(
      log_limit_, core::log_level::warning,
      "cannot use the changed certificates; the old ones stay in use",
      {{"source", configuration_.source}, {"error", result.error().message()}});
}

bool authenticator::mark_suspect(std::uint64_t generation) {
  if (generation != generation_) return true;
  if (uses_plugin()) {
    plugin_wanted_ = true;
    return true;
  }
  looked_ = core::time_point::min();
  token_stamp_.forget();
  ca_stamp_.forget();
  certificate_stamp_.forget();
  key_stamp_.forget();
  look_at_files();
  return generation != generation_;
}

asio::awaitable<void> authenticator::close() {
  closed_ = true;
  tasks_.cancel();
  co_await tasks_.join();
}

}  // namespace rw::k8s
