#include "rw/tls/transport.hpp"

#include "rw/tls/context.hpp"
#include "rw/tls/openssl.hpp"
#include "rw/tls/stream.hpp"

#include <openssl/err.h>

#include <functional>
#include <mutex>

namespace rw::tls {
namespace {

/// Caches the object built from the credentials' material. The first connection after a change of
/// the material builds it again. Connections keep theirs alive.
template <class Made>
class renewed {
 public:
  using build = std::function<result<std::shared_ptr<Made>>(std::shared_ptr<const material>)>;

  renewed(std::shared_ptr<credentials> own, build build_context)
      : own_(std::move(own)), build_(std::move(build_context)) {}

  /// Builds the first object; the caller handles its failure.
  result<void> prepare() {
    const auto [material, generation] = own_->snapshot();
    auto made = build_(material);
    if (!made) return made.error();
    current_ = std::move(*made);
    generation_ = generation;
    return {};
  }

  /// Returns the object of the current material, and its generation.
  std::pair<std::shared_ptr<Made>, std::uint64_t> snapshot() {
    const std::lock_guard lock(mutex_);
    if (own_->generation() == generation_) return {current_, generation_};
    const auto [material, generation] = own_->snapshot();
    generation_ = generation;
    // The material was checked before, so a failure means lack of memory: keep the previous object.
    if (auto made = build_(material)) current_ = std::move(*made);
    return {current_, generation_};
  }

 private:
  const std::shared_ptr<credentials> own_;
  const build build_;
  std::mutex mutex_;
  std::shared_ptr<Made> current_;
  std::uint64_t generation_ = 0;
};

/// A server's stream. If the material was replaced during the handshake, it rejects a client
/// certificate that does not chain directly to a current CA.
class server_stream final : public stream {
 public:
  server_stream(boost::asio::ip::tcp::socket socket, std::shared_ptr<ssl_ctx_st> context,
                const credentials& own, std::uint64_t generation)
      : stream(std::move(socket), context.get(), side::server, context),
        own_(own),
        generation_(generation) {}

  core::io_result handshake() override {
    const auto done = stream::handshake();
    if (done.error || done.wants != core::want::nothing || is_trusted()) return done;
    return {.error = error::untrusted};
  }

 private:
  bool is_trusted() const {
    if (generation_ == own_.generation() || peer_certificate().empty()) return true;
    const auto leaf = certificate::from_der(peer_certificate());
    const auto present = own_.current();
    return leaf && present->ca() && present->ca()->verify(*leaf);
  }

  const credentials& own_;
  const std::uint64_t generation_;
};

class server_transport final : public core::transport {
 public:
  server_transport(std::shared_ptr<credentials> own, server_options options)
      : own_(own), contexts_(std::move(own), [options = std::move(options)](const auto& m) {
          return make_server_context(*m, options);
        }) {}

  result<void> prepare() { return contexts_.prepare(); }

  std::unique_ptr<core::stream> wrap(boost::asio::ip::tcp::socket socket) override {
    auto [context, generation] = contexts_.snapshot();
    return std::make_unique<server_stream>(std::move(socket), std::move(context), *own_,
                                           generation);
  }

 private:
  const std::shared_ptr<credentials> own_;
  renewed<ssl_ctx_st> contexts_;
};

/// A client with one generation of its material, and the sessions made with it. Streams keep it
/// alive, for tickets that arrive late.
struct client_epoch {
  explicit client_epoch(std::shared_ptr<const material> m) : own(std::move(m)) {}

  /// Tickets kept: enough for a small pool of connections to reconnect at once.
  static constexpr std::size_t max_sessions = 4;

  void keep(session_ptr session) {
    const std::lock_guard lock(mutex);
    if (sessions.size() == max_sessions) sessions.erase(sessions.begin());
    sessions.push_back(std::move(session));
  }

  /// Takes the newest session; each is used once (RFC 8446, appendix C.4).
  session_ptr take() {
    const std::lock_guard lock(mutex);
    if (sessions.empty()) return {};
    auto newest = std::move(sessions.back());
    sessions.pop_back();
    return newest;
  }

  const std::shared_ptr<const material> own;
  std::mutex mutex;
  std::vector<session_ptr> sessions;
};

int on_ticket(SSL* ssl, SSL_SESSION* session) {
  auto* const to = static_cast<client_epoch*>(SSL_get_app_data(ssl));
  if (!to) return 0;
  // A copy: OpenSSL invalidates the original when its connection ends without close_notify.
  session_ptr copy(SSL_SESSION_dup(session));
  if (copy) to->keep(std::move(copy));
  return 0;
}

/// Returns the context that all clients share. A context is large, and a process may have a client
/// for each of a thousand clusters.
result<context_ptr> shared_context(version least) {
  static const auto make = [](version of) {
    auto made = make_client_context(of);
    if (!made) return made;
    SSL_CTX_set_session_cache_mode(made->get(),
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
    SSL_CTX_sess_set_new_cb(made->get(), on_ticket);
    return made;
  };
  static const auto newest = make(version::tls_1_3);
  static const auto older = make(version::tls_1_2);
  return least == version::tls_1_3 ? newest : older;
}

class client_transport final : public core::transport {
 public:
  client_transport(std::shared_ptr<credentials> own, client_options options)
      : options_(std::move(options)),
        epochs_(std::move(own), [this](const auto& material) { return build(material); }) {}

  result<void> prepare() {
    auto context = shared_context(options_.least);
    if (!context) return context.error();
    context_ = std::move(*context);
    return epochs_.prepare();
  }

  std::unique_ptr<core::stream> wrap(boost::asio::ip::tcp::socket socket) override {
    auto epoch = epochs_.snapshot().first;
    auto made =
        std::make_unique<stream>(std::move(socket), context_.get(), stream::side::client, epoch);
    auto* const ssl = made->native();
    if (!ssl) return made;
    if (!prepare_client(ssl, *epoch->own, options_)) return nullptr;
    if (options_.resume_sessions) {
      SSL_set_app_data(ssl, epoch.get());
      // If the session is unusable, OpenSSL makes a full handshake.
      if (const auto session = epoch->take()) SSL_set_session(ssl, session.get());
    }
    ERR_clear_error();
    return made;
  }

 private:
  /// Tries the material on a connection that is never used.
  result<std::shared_ptr<client_epoch>> build(const std::shared_ptr<const material>& material) {
    const ssl_ptr trial(SSL_new(context_.get()));
    if (!trial) return failure(take_openssl_error(error::out_of_memory));
    if (auto done = prepare_client(trial.get(), *material, options_); !done) return done.error();
    return std::make_shared<client_epoch>(material);
  }

  const client_options options_;
  context_ptr context_;
  renewed<client_epoch> epochs_;
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
