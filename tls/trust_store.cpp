#include "rw/tls/trust_store.hpp"

#include "rw/tls/openssl.hpp"

#include <openssl/err.h>

namespace rw::tls {
namespace {

struct stack_free {
  void operator()(STACK_OF(X509) * stack) const noexcept { sk_X509_free(stack); }
};

using store_context_ptr = std::unique_ptr<X509_STORE_CTX, openssl_free<&X509_STORE_CTX_free>>;

}  // namespace

result<trust_store> trust_store::from_pem(std::string_view bundle) {
  auto anchors = load_pem_bundle(bundle);
  if (!anchors) return anchors.error();
  return from(std::move(*anchors));
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
