#pragma once

#include "k8s/objects/failure.hpp"
#include "k8s/objects/names.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <functional>
#include <string>

namespace rw {

/// The content that all runtimes share, as it is in KCP.
struct shared_content {
  std::string digest = {};
  bool at_once = false;  ///< it may go to all runtimes at once
};

/// Revisions that one runtime can have of a content, as digests.
struct content_revisions {
  std::string newest = {};     ///< of the content in KCP; empty: that is invalid
  std::string completed = {};  ///< of the content that was rolled out last; empty: none was
};

/// Decides which runtimes may take a content. Whoever writes to runtimes asks it at each pass, and
/// tells it what the pass found. Single executor.
class content_gate {
 public:
  struct callbacks {
    /// Enqueues a runtime: it may take the content now.
    std::function<void(const k8s::object_key&)> requeue = {};
    /// Stores a content, by its digest, as the one that was rolled out last: runtimes that wait for
    /// their turn and have nothing get it. Fails if KCP has another content by now.
    std::function<boost::asio::awaitable<k8s::result<void>>(std::string digest)> store = {};
  };

  virtual ~content_gate() = default;

  /// To be called before the gate runs; what is called must outlive its run.
  virtual void attach(callbacks to) = 0;

  /// Notes a runtime that has content in common with the others, by the resource that says what it
  /// has. Returns true if it may take `desired.newest`.
  virtual bool admit(const boost::json::value& resource, const shared_content& content,
                     const content_revisions& desired) = 0;

  /// Notes what a pass left. `ahead`: another writer has brought the newest content, or a part of
  /// it, to a runtime that was not admitted.
  virtual void observe(const boost::json::value& resource, bool ahead) = 0;

  /// The runtime has no content in common with the others any longer.
  virtual void leave(const k8s::object_key& runtime) = 0;
};

}  // namespace rw
