#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace rw::k8s::devserver {

/// What is to happen to one request instead of, or before, the right thing.
struct fault {
  std::chrono::milliseconds latency{0};  ///< before anything else
  unsigned status = 0;                   ///< answer with this status; 0: go on
  unsigned retry_after = 0;              ///< with `status`: the header, in seconds
  bool drop = false;                     ///< break off without an answer
  bool last = false;    ///< the last answer of its connection (kube-apiserver's --goaway-chance)
  bool silent = false;  ///< watches: neither events nor bookmarks, nor an end
  std::optional<unsigned> events = {};  ///< watches: break off after this many
  bool torn = false;                    ///< with `events`: in the middle of the last one
};

/// Faults of one cluster. Asked for each request with what it is; the answer is what happens to it.
/// By default there are none.
struct faults {
  /// `verb` is that of Kubernetes' audit log: get, list, watch, create, update, patch, delete,
  /// deletecollection.
  std::function<fault(const std::string& verb, const std::string& path)> decide;
};

}  // namespace rw::k8s::devserver
