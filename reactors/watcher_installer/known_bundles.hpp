#pragma once

#include "rw/core/lru_map.hpp"
#include "rw/tls/ca_bundle.hpp"

#include <string>

namespace rw::watcher_installer {

/// Caches the bundles that were parsed last, by their text: all runtimes have the same one or two,
/// in the Secret and in each webhook, and parsing certificates is most of a reconcile's cost.
///
/// Not thread-safe.
class known_bundles {
 public:
  /// As ca_bundle::salvage.
  tls::ca_bundle read(const std::string& pem) {
    if (known_.find(pem) != nullptr) return known_.use(pem);
    return known_.use(pem, tls::ca_bundle::salvage(pem));
  }

 private:
  core::lru_map<std::string, tls::ca_bundle> known_{16};
};

}  // namespace rw::watcher_installer
