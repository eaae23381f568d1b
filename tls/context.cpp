#include "rw/tls/context.hpp"

#include "rw/tls/openssl.hpp"

#include <openssl/err.h>

#include <algorithm>
#include <arpa/inet.h>
#include <netinet/in.h>

namespace rw::tls {
namespace {

/// Common part of the server's and the client's context.
result<context_ptr> make_context(const SSL_METHOD* method) {
  ERR_clear_error();
  context_ptr out(SSL_CTX_new(method), &SSL_CTX_free);
  if (!out) return failure(take_openssl_error(error::out_of_memory));
  auto* context = out.get();
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
  // Partial writes: one record at a time, as much as the socket accepts. Moving buffers: the owner
  // may offer the rest from another address. Released buffers: an idle connection uses 34 KiB less.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  // One recv reads header and body of a record, and the records after it.
  SSL_CTX_set_read_ahead(context, 1);
  return out;
}

result<void> use_own(SSL_CTX* context, const material& own) {
  ERR_clear_error();
  bool good = SSL_CTX_use_certificate(context, own.leaf()->native()) == 1 &&
              SSL_CTX_use_PrivateKey(context, own.key()) == 1;
  for (const auto& certificate : own.chain()) {
    good = good && SSL_CTX_add1_chain_cert(context, certificate.native()) == 1;
  }
  if (good) return {};
  const auto code = take_openssl_error(error::unusable_material);
  return failure(error::unusable_material,
                 "certificate or key is refused by OpenSSL: " + code.message());
}

/// The wire form of RFC 7301: each name after its length.
result<std::string> wire_form(const std::vector<std::string>& protocols) {
  std::string out;
  for (const auto& name : protocols) {
    if (name.empty() || name.size() > 255) {
      return failure(error::bad_request,
                     "ALPN protocol \"" + name + "\" is not 1 to 255 bytes long");
    }
    out += static_cast<char>(name.size());
    out += name;
  }
  return out;
}

/// The server's list lives as long as its context.
int alpn_slot() {
  static const int slot = SSL_CTX_get_ex_new_index(
      0, nullptr, nullptr, nullptr, [](void*, void* list, CRYPTO_EX_DATA*, int, long, void*) {
        delete static_cast<std::string*>(list);
      });
  return slot;
}

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* offered, unsigned int offered_size, void* list) {
  const auto* own = static_cast<const std::string*>(list);
  unsigned char* chosen = nullptr;
  const int found =
      SSL_select_next_proto(&chosen, out_size, reinterpret_cast<const unsigned char*>(own->data()),
                            static_cast<unsigned>(own->size()), offered, offered_size);
  if (found != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

/// Completes the own chain from the CA bundle once, instead of at each handshake. Omits the root,
/// which a peer must have anyway (RFC 8446, section 4.4.2).
void complete_chain(SSL_CTX* context) {
  const int flags = SSL_BUILD_CHAIN_FLAG_UNTRUSTED | SSL_BUILD_CHAIN_FLAG_NO_ROOT |
                    SSL_BUILD_CHAIN_FLAG_IGNORE_ERROR | SSL_BUILD_CHAIN_FLAG_CLEAR_ERROR;
  if (SSL_CTX_build_cert_chain(context, flags) > 0) {
    SSL_CTX_set_mode(context, SSL_MODE_NO_AUTO_CHAIN);
  }
  ERR_clear_error();
}

result<void> verify_clients(SSL_CTX* context, const material& own, bool required) {
  if (!own.ca()) {
    return failure(error::missing_material, "client certificates are requested, but no CA bundle");
  }
  SSL_CTX_set1_cert_store(context, own.ca()->native());
  complete_chain(context);
  SSL_CTX_set_verify(context,
                     required ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_PEER,
                     nullptr);
  for (const auto& anchor : own.ca()->anchors()) {
    if (SSL_CTX_add_client_CA(context, anchor.native()) != 1) return failure(error::out_of_memory);
  }
  return {};
}

/// The certificate's SANs must contain the name (RFC 9525); the common name does not count.
result<void> expect_server(SSL* connection, const std::string& name) {
  if (name.empty()) return failure(error::bad_request, "a TLS client needs the name of its server");
  auto* expected = SSL_get0_param(connection);
  X509_VERIFY_PARAM_set_hostflags(
      expected, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const bool good = is_address(name)
                        ? X509_VERIFY_PARAM_set1_ip_asc(expected, name.c_str()) == 1
                        : X509_VERIFY_PARAM_set1_host(expected, name.data(), name.size()) == 1;
  if (!good) return failure(error::bad_request, "\"" + name + "\" is not a server name");
  return {};
}

/// The system's certificate authorities, shared by all contexts: the store is large.
result<X509_STORE*> system_authorities() {
  static const store_ptr store = [] {
    store_ptr made(X509_STORE_new());
    if (made && X509_STORE_set_default_paths(made.get()) != 1) made.reset();
    return made;
  }();
  ERR_clear_error();  // a missing file or folder is no failure
  if (!store) return failure(error::out_of_memory, "the system's certificate authorities");
  return store.get();
}

result<void> verify_server(SSL* connection, const material& own, const client_options& options) {
  if (options.insecure_skip_verify) return {};
  X509_STORE* store = nullptr;
  if (own.ca()) {
    store = own.ca()->native();
  } else if (options.trust_system) {
    const auto found = system_authorities();
    if (!found) return found.error();
    store = *found;
  } else {
    return failure(error::missing_material, "a TLS client needs the CA bundle of its server");
  }
  if (SSL_set1_verify_cert_store(connection, store) != 1) return failure(error::out_of_memory);
  SSL_set_verify(connection, SSL_VERIFY_PEER, nullptr);
  return expect_server(connection, options.server_name);
}

result<void> show_own(SSL* connection, const material& own) {
  ERR_clear_error();
  bool good = SSL_use_certificate(connection, own.leaf()->native()) == 1 &&
              SSL_use_PrivateKey(connection, own.key()) == 1;
  for (const auto& certificate : own.chain()) {
    good = good && SSL_add1_chain_cert(connection, certificate.native()) == 1;
  }
  if (good) return {};
  return failure(take_openssl_error(error::unusable_material));
}

/// Enables TLS 1.2 as RFC 9325 recommends it, and RFC 9113 (appendix A) demands it for HTTP/2.
result<void> accept_version_12(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  if (SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1) return {};
  return failure(take_openssl_error(error::bad_request));
}

/// SSL_set_tlsext_host_name, whose macro casts as C does.
bool set_server_name(SSL* connection, std::string name) {
  return SSL_ctrl(connection, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                  name.data()) == 1;
}

}  // namespace

bool is_address(const std::string& name) {
  unsigned char address[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, name.c_str(), address) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), address) == 1;
}

result<void> check_usable(const material& own) {
  auto context = make_context(TLS_method());
  if (!context) return context.error();
  return use_own(context->get(), own);
}

result<context_ptr> make_server_context(const material& own, const server_options& options) {
  if (!own.leaf()) {
    return failure(error::missing_material, "a TLS server needs a certificate and its key");
  }
  auto list = wire_form(options.alpn);
  if (!list) return list.error();
  auto made = make_context(TLS_server_method());
  if (!made) return made;
  auto* context = made->get();
  if (auto used = use_own(context, own); !used) return used.error();
  if (options.request_client_certificate || options.require_client_certificate) {
    auto done = verify_clients(context, own, options.require_client_certificate);
    if (!done) return done.error();
  }
  if (!list->empty()) {
    auto kept = std::make_unique<std::string>(std::move(*list));
    if (SSL_CTX_set_ex_data(context, alpn_slot(), kept.get()) != 1) {
      return failure(error::out_of_memory);
    }
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, kept.release());
  }
  // Tickets carry the session, encrypted with a key of this context.
  static constexpr unsigned char session_context[] = "runtime-watcher";
  SSL_CTX_set_session_id_context(context, session_context, sizeof session_context - 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, std::min(options.tickets, 2U));
  return made;
}

result<context_ptr> make_client_context(version least) {
  auto made = make_context(TLS_client_method());
  if (!made || least == version::tls_1_3) return made;
  if (auto done = accept_version_12(made->get()); !done) return done.error();
  return made;
}

result<void> prepare_client(SSL* connection, const material& own, const client_options& options) {
  const auto list = wire_form(options.alpn);
  if (!list) return list.error();
  if (auto done = verify_server(connection, own, options); !done) return done;
  if (options.present_certificate && own.leaf()) {
    if (auto done = show_own(connection, own); !done) return done;
  }
  if (!options.server_name.empty() && !is_address(options.server_name) &&
      !set_server_name(connection, options.server_name)) {
    return failure(take_openssl_error(error::out_of_memory));
  }
  if (!list->empty() &&
      SSL_set_alpn_protos(connection, reinterpret_cast<const unsigned char*>(list->data()),
                          static_cast<unsigned>(list->size())) != 0) {
    return failure(error::out_of_memory);
  }
  return {};
}

}  // namespace rw::tls
