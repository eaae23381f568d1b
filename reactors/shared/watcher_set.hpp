#pragma once

#include "rw/k8s/cache/informer.hpp"
#include "rw/reactors/shared/watcher.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rw {

/// Maximum number of Watchers. Each is a webhook with a CA bundle of its own in one object on each
/// runtime, and etcd takes objects of 1.5 MiB: in a rotation a bundle has two authorities, of
/// 5 KiB in base64 with RSA-4096, beside 2 KiB of the webhook and its field owners.
inline constexpr std::size_t most_watchers = 200;

/// A Watcher that exists, and is valid or was so.
struct watcher_candidate {
  watcher desired = {};                  ///< its content, or the last valid one
  std::optional<watcher> accepted = {};  ///< the content in its VirtualService; nothing: none yet
};

/// The Watchers that runtimes get.
struct watcher_choice {
  std::vector<watcher> in_force = {};  ///< sorted by key
  /// The Watchers whose content does not fit, with a sentence each. One that was accepted before is
  /// in force with that content.
  std::unordered_map<k8s::object_key, std::string, k8s::object_key_hash> refused = {};
};

/// Decides which Watchers fit on a runtime. Those in force stay so: what was accepted comes first,
/// then changes and new Watchers, the older first. So all leaders, and all readers, decide alike.
watcher_choice choose_watchers(std::vector<watcher_candidate> among);

/// The choice among what two informers have, which must outlive it. Single executor.
class watcher_set {
 public:
  watcher_set(const k8s::informer& watchers, const k8s::informer& virtual_services)
      : watchers_(watchers), virtual_services_(virtual_services) {}

  /// Returns the present choice, which is valid until the next call. Reads objects only after a
  /// change.
  const watcher_choice& current();

 private:
  const k8s::informer& watchers_;
  const k8s::informer& virtual_services_;
  std::vector<std::pair<k8s::object, k8s::object>> made_of_;
  watcher_choice choice_;
};

}  // namespace rw
