#include "rw/tls/trust_store.hpp"

#include "rw/tls/ca_bundle.hpp"
#include "rw/tls/openssl.hpp"

#include <openssl/err.h>
#include <openssl/x509v3.h>

namespace rw::tls {
namespace {

struct stack_free {
  void operator()(STACK_OF(X509) * stack) const noexcept { sk_X509_free(stack); }
};

using store_context_ptr = std::unique_ptr<X509_STORE_CTX, openssl_free<&X509_STORE_CTX_free>>;

/// Frees the certificates, too.
struct certificates_free {
  void operator()(STACK_OF(X509) * stack) const noexcept { sk_X509_pop_free(stack, X509_free); }
};

constexpr int least_security_bits = 112;  // as OpenSSL's security level 2

/// Whether a CA may issue certificates of clients and of servers. One that is restricted in any way
/// (name constraints, extended key usage, a critical extension that OpenSSL does not know) may not:
/// only a chain that OpenSSL builds is checked against restrictions.
bool is_unrestricted(X509* anchor) {
  constexpr int as_ca = 1;
  return X509_check_ca(anchor) != 0 &&
         X509_check_purpose(anchor, X509_PURPOSE_SSL_CLIENT, as_ca) > 0 &&
         X509_check_purpose(anchor, X509_PURPOSE_SSL_SERVER, as_ca) > 0 &&
         (X509_get_extension_flags(anchor) & EXFLAG_CRITICAL) == 0 &&
         X509_get_ext_by_NID(anchor, NID_name_constraints, -1) < 0;
}

/// Whether `anchor` has signed `leaf`, and may have.
bool has_issued(X509* anchor, X509* leaf, const X509_VERIFY_PARAM* rules) {
  auto* const key = X509_get0_pubkey(anchor);
  int digest_bits = 0;
  return X509_check_issued(anchor, leaf) == X509_V_OK && is_unrestricted(anchor) &&
         X509_cmp_timeframe(rules, X509_get0_notBefore(anchor), X509_get0_notAfter(anchor)) == 0 &&
         key != nullptr && EVP_PKEY_get_security_bits(key) >= least_security_bits &&
         X509_get_signature_info(leaf, nullptr, nullptr, &digest_bits, nullptr) == 1 &&
         digest_bits >= least_security_bits && X509_verify(leaf, key) == 1;
}

/// OpenSSL takes a certificate whose subject equals its issuer for self-signed, unless key
/// identifiers tell them apart, and then looks for no issuer. Accepts such a leaf if an anchor has
/// issued it; OpenSSL checks the leaf's validity, purpose and names itself.
int accept_namesake(int good, X509_STORE_CTX* context) {
  const int reason = X509_STORE_CTX_get_error(context);
  const bool lacks_issuer = reason == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
                            reason == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
  auto* const leaf = X509_STORE_CTX_get0_cert(context);
  if (good == 1 || !lacks_issuer || X509_STORE_CTX_get_error_depth(context) != 0 ||
      X509_self_signed(leaf, 0) != 1) {
    return good;
  }
  const auto* const rules = X509_STORE_CTX_get0_param(context);
  const std::unique_ptr<STACK_OF(X509), certificates_free> namesakes(
      X509_STORE_CTX_get1_certs(context, X509_get_issuer_name(leaf)));
  for (int i = 0; i < sk_X509_num(namesakes.get()); ++i) {
    if (!has_issued(sk_X509_value(namesakes.get(), i), leaf, rules)) continue;
    X509_STORE_CTX_set_error(context, X509_V_OK);
    return 1;
  }
  return good;
}

}  // namespace

result<trust_store> trust_store::from_pem(std::string_view bundle) {
  auto anchors = load_pem_bundle(bundle);
  if (anchors) return from(std::move(*anchors));
  const auto left = ca_bundle::salvage(bundle);
  if (left.empty()) return anchors.error();
  auto out = from(left.authorities());
  if (out) out->damage_ = anchors.error().message();
  return out;
}

result<trust_store> trust_store::from(std::vector<certificate> anchors) {
  if (anchors.empty()) return failure(error::not_pem, "holds no certificate");
  store_ptr store(X509_STORE_new());
  if (!store) return failure(error::out_of_memory);
  for (const auto& anchor : anchors) {
    if (X509_STORE_add_cert(store.get(), anchor.native()) != 1) {
      return failure(take_openssl_error(error::out_of_memory));
    }
  }
  // An anchor need not be self-signed: rotation bundles and Kubernetes peers use intermediates too.
  X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN);
  X509_STORE_set_verify_cb(store.get(), accept_namesake);
  trust_store out;
  out.anchors_ = std::make_shared<const std::vector<certificate>>(std::move(anchors));
  out.store_ = std::move(store);
  return out;
}

result<void> trust_store::verify(const certificate& leaf,
                                 std::span<const certificate> intermediates, purpose use,
                                 wall_time at) const {
  const std::unique_ptr<STACK_OF(X509), stack_free> between(sk_X509_new_null());
  const store_context_ptr context(X509_STORE_CTX_new());
  if (!between || !context) return failure(error::out_of_memory);
  for (const auto& intermediate : intermediates) {
    if (sk_X509_push(between.get(), intermediate.native()) == 0)
      return failure(error::out_of_memory);
  }
  if (X509_STORE_CTX_init(context.get(), store_.get(), leaf.native(), between.get()) != 1) {
    return failure(take_openssl_error(error::out_of_memory));
  }
  X509_STORE_CTX_set_default(context.get(),
                             use == purpose::client_auth ? "ssl_client" : "ssl_server");
  X509_STORE_CTX_set_time(context.get(), 0, std::chrono::system_clock::to_time_t(at));
  const bool good = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  if (good) return {};
  const int reason = X509_STORE_CTX_get_error(context.get());
  const int depth = X509_STORE_CTX_get_error_depth(context.get());
  std::string detail = "certificate of \"" + leaf.common_name() + "\" refused: ";
  detail += X509_verify_cert_error_string(reason);
  if (depth > 0) detail += " (its issuer, " + std::to_string(depth) + " above)";
  if (reason == X509_V_OK) return failure(error::untrusted, std::move(detail));
  return failure(boost::system::error_code(reason, verify_category()), std::move(detail));
}

}  // namespace rw::tls
