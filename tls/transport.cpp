#include "tls/transport.hpp"

#include "tls/context.hpp"
#include "tls/openssl.hpp"
#include "tls/stream.hpp"

#include <openssl/err.h>

#include <functional>
#include <mutex>

namespace rw::tls {
namespace {

/// What belongs to one generation of the material: its context and, at a client, the sessions made
/// with it. Streams keep it alive, so that tickets that come late have somewhere to go.
struct epoch {
  explicit epoch(context_ptr made) : context(std::move(made)) {}

  /// Tickets kept: enough for a small pool of connections to come back at once.
  static constexpr std::size_t max_sessions = 4;

  void keep(session_ptr session) {
    const std::lock_guard lock(mutex);
    if (sessions.size() == max_sessions) sessions.erase(sessions.begin());
    sessions.push_back(std::move(session));
  }

  /// The newest one; each is used once (RFC 8446, appendix C.4).
  session_ptr take() {
    const std::lock_guard lock(mutex);
    if (sessions.empty()) return {};
    auto newest = std::move(sessions.back());
    sessions.pop_back();
    return newest;
  }

  const context_ptr context;
  std::mutex mutex;
  std::vector<session_ptr> sessions;
};

int on_ticket(SSL* ssl, SSL_SESSION* session) {
  // A copy: the original is spoilt when its connection ends without close_notify.
  auto* to = static_cast<epoch*>(SSL_get_app_data(ssl));
  session_ptr copy(SSL_SESSION_dup(session));
  if (to && copy) to->keep(std::move(copy));
  return 0;
}

/// Builds a context when the first connection after a change of the material asks for it.
class contexts {
 public:
  using build = std::function<result<context_ptr>(const material&)>;

  contexts(std::shared_ptr<credentials> own, build how)
      : own_(std::move(own)), build_(std::move(how)) {}

  /// The first one, whose failure is the caller's.
  result<void> prepare() {
    const auto [material, generation] = own_->snapshot();
    auto made = build_(*material);
    if (!made) return made.error();
    current_ = std::make_shared<epoch>(std::move(*made));
    generation_ = generation;
    return {};
  }

  std::shared_ptr<epoch> current() {
    const std::lock_guard lock(mutex_);
    if (own_->generation() == generation_) return current_;
    const auto [material, generation] = own_->snapshot();
    generation_ = generation;
    // Material has been checked before it came here, so a failure is a want of memory: go on as
    // before.
    if (auto made = build_(*material)) current_ = std::make_shared<epoch>(std::move(*made));
    return current_;
  }

 private:
  const std::shared_ptr<credentials> own_;
  const build build_;
  std::mutex mutex_;
  std::shared_ptr<epoch> current_;
  std::uint64_t generation_ = 0;
};

class server_transport final : public core::transport {
 public:
  server_transport(std::shared_ptr<credentials> own, server_options options)
      : contexts_(std::move(own), [options = std::move(options)](const material& m) {
          return make_server_context(m, options);
        }) {}

  result<void> prepare() { return contexts_.prepare(); }

  std::unique_ptr<core::stream> wrap(boost::asio::ip::tcp::socket socket) override {
    auto epoch = contexts_.current();
    auto* context = epoch->context.get();
    return std::make_unique<stream>(std::move(socket), context, stream::side::server,
                                    std::move(epoch));
  }

 private:
  contexts contexts_;
};

class client_transport final : public core::transport {
 public:
  client_transport(std::shared_ptr<credentials> own, client_options options)
      : server_name_(options.server_name),
        contexts_(std::move(own), [options = std::move(options)](const material& m) {
          auto made = make_client_context(m, options);
          if (made && options.resume_sessions) SSL_CTX_sess_set_new_cb(made->get(), on_ticket);
          return made;
        }) {}

  result<void> prepare() { return contexts_.prepare(); }

  std::unique_ptr<core::stream> wrap(boost::asio::ip::tcp::socket socket) override {
    auto epoch = contexts_.current();
    auto made = std::make_unique<stream>(std::move(socket), epoch->context.get(),
                                         stream::side::client, epoch);
    auto* ssl = made->native();
    if (!ssl) return made;
    SSL_set_app_data(ssl, epoch.get());
    if (!is_address(server_name_)) SSL_set_tlsext_host_name(ssl, server_name_.c_str());
    // Where a session cannot be used, the handshake is a full one.
    if (const auto session = epoch->take()) SSL_set_session(ssl, session.get());
    ERR_clear_error();
    return made;
  }

 private:
  const std::string server_name_;
  contexts contexts_;
};

template <class Transport, class Options>
result<std::unique_ptr<core::transport>> make(std::shared_ptr<credentials> own, Options options) {
  auto made = std::make_unique<Transport>(std::move(own), std::move(options));
  if (auto ready = made->prepare(); !ready) return ready.error();
  return std::unique_ptr<core::transport>(std::move(made));
}

}  // namespace

result<std::unique_ptr<core::transport>> make_server_transport(std::shared_ptr<credentials> own,
                                                               server_options options) {
  return make<server_transport>(std::move(own), std::move(options));
}

result<std::unique_ptr<core::transport>> make_client_transport(std::shared_ptr<credentials> own,
                                                               client_options options) {
  return make<client_transport>(std::move(own), std::move(options));
}

}  // namespace rw::tls
