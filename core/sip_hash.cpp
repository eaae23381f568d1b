#include "rw/core/sip_hash.hpp"

#include "rw/core/fixed_hash_key.hpp"

#include <cerrno>
#include <optional>
#include <stdexcept>
#include <sys/random.h>
#include <system_error>

namespace rw::core {
namespace {

sip_key random_key() {
  sip_key key;
  ssize_t got = 0;
  do {
    got = ::getrandom(&key, sizeof key, 0);  // up to 256 bytes come whole (getrandom(2))
  } while (got < 0 && errno == EINTR);
  if (got != sizeof key) throw std::system_error(errno, std::system_category(), "getrandom");
  return key;
}

std::optional<sip_key>& fixed_key() {
  static std::optional<sip_key> key;
  return key;
}

}  // namespace

const sip_key& sip_key::of_process() {
  static const sip_key key = fixed_key() ? *fixed_key() : random_key();
  return key;
}

void fix_hash_key(const sip_key& key) {
  fixed_key() = key;
  const auto& used = sip_key::of_process();
  if (used.k0 != key.k0 || used.k1 != key.k1) {
    throw std::logic_error("fix_hash_key: something was hashed before");
  }
}

}  // namespace rw::core
