#pragma once

#include "rw/core/lru_map.hpp"
#include "rw/reactors/shared/most_runtimes.hpp"
#include "rw/tls/certificate.hpp"
#include "rw/tls/error.hpp"
#include "rw/tls/issuer.hpp"

#include <cstddef>
#include <string>
#include <variant>

namespace rw::certificates {

/// Reads certificates with their keys, and caches, by a digest of their content, which pairs are
/// usable: reading a key and comparing it with its certificate costs a millisecond, and nearly all
/// reconciles read the same pairs.
///
/// Not thread-safe.
class usable_pairs {
 public:
  explicit usable_pairs(std::size_t capacity = most_runtimes) : known_(capacity) {}

  /// Returns the pair's certificate, if a server can use the pair: both are readable and belong
  /// together.
  tls::result<tls::certificate> read(const tls::key_pair& pair);

  std::size_t size() const noexcept { return known_.size(); }

 private:
  core::lru_map<std::string, std::monostate> known_;
};

}  // namespace rw::certificates
