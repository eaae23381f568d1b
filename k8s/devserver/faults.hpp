#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace rw::k8s::devserver {

struct fault {
  std::chrono::milliseconds latency{0};  ///< before anything else
  unsigned status = 0;                   ///< response with this status; 0: none
  unsigned retry_after = 0;              ///< with `status`: the header, in seconds
  bool drop = false;                     ///< disconnect without a response
  bool last = false;    ///< the last response of its connection (kube-apiserver's --goaway-chance)
  bool silent = false;  ///< watches: no events, no bookmarks, no end
  std::optional<unsigned> events = {};  ///< watches: disconnect after this many
  bool torn = false;                    ///< with `events`: in the middle of the last one
  bool ends = false;                    ///< with `events`: the watch ends in order instead
};

/// Faults of one cluster. The server calls it for each request; it returns the fault to inject.
/// Without it there are none.
struct faults {
  /// `verb` is that of Kubernetes' audit log: get, list, watch, create, update, patch, delete,
  /// deletecollection.
  std::function<fault(const std::string& verb, const std::string& path)> decide;
};

}  // namespace rw::k8s::devserver
