#include "rw/core/sip_hash.hpp"

#include <cerrno>
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

}  // namespace

const sip_key& sip_key::of_process() {
  static const sip_key key = random_key();
  return key;
}

}  // namespace rw::core
