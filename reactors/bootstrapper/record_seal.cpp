#include "reactors/bootstrapper/record_seal.hpp"

#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr std::size_t key_bytes = 32;
constexpr std::string_view entry = "key";

k8s::result<std::string> key_in(const json::value& secret) {
  auto key = k8s::secret_data(secret, entry).value_or(std::string());
  if (key.size() >= key_bytes) return key;
  return k8s::failure{.code = k8s::errc::invalid,
                      .message = "Secret " + to_string(k8s::key_of(secret)) +
                                 " has no key of 32 bytes under \"key\"; remove it, and a new one "
                                 "is made"};
}

}  // namespace

std::string make_record_key() {
  std::string out(key_bytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), key_bytes) != 1) {
    throw std::runtime_error("the system gives no random bytes for the key of records");
  }
  return out;
}

std::string seal_of(std::string_view key, std::string_view subject, std::string_view record) {
  // No subject has a NUL, so that its end is certain.
  std::string text = "runtime-watcher bootstrapper record 1";
  text.append(1, '\0').append(subject).append(1, '\0').append(record);
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes.data(), &size);
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (unsigned int i = 0; i < size; ++i) {
    out += digits[bytes[i] >> 4U];
    out += digits[bytes[i] & 15U];
  }
  return out;
}

bool is_sealed(std::string_view seal, std::string_view key, std::string_view subject,
               std::string_view record) {
  const auto right = seal_of(key, subject, record);
  return !right.empty() && seal.size() == right.size() &&
         CRYPTO_memcmp(seal.data(), right.data(), right.size()) == 0;
}

asio::awaitable<k8s::result<std::string>> find_record_key(k8s::client& kcp, std::string ns) {
  const k8s::object_key key{ns, std::string(record_key_name)};
  const auto there = co_await kcp.get(secrets_type(), key);
  if (there) co_return key_in(*there);
  if (!there.error().is(k8s::errc::not_found)) co_return there.error();
  json::value secret{{"apiVersion", "v1"},
                     {"kind", "Secret"},
                     {"metadata", {{"name", key.name}, {"namespace", key.ns}}},
                     {"type", "Opaque"}};
  k8s::set_secret_data(secret, entry, make_record_key());
  const auto made = co_await kcp.create(secrets_type(), std::move(secret));
  if (made) co_return key_in(*made);
  if (!made.error().is(k8s::errc::already_exists)) co_return made.error();
  const auto theirs = co_await kcp.get(secrets_type(), key);
  if (!theirs) co_return theirs.error();
  co_return key_in(*theirs);
}

}  // namespace rw::bootstrapper
