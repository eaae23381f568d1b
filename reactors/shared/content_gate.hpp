#pragma once

#include "k8s/objects/failure.hpp"
#include "k8s/objects/names.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <functional>
#include <string>

namespace rw {

/// The content that all runtimes share, in its state in KCP.
struct shared_content {
  std::string digest = {};
  bool at_once = false;  ///< it may go to all runtimes at once
};

/// Revisions of a content that one runtime may get, as digests.
struct content_revisions {
  std::string newest = {};     ///< of the content in KCP; empty: it is invalid
  std::string completed = {};  ///< of the last content rolled out completely; empty: none was
};

/// Decides which runtimes may get a content. A reactor that writes to runtimes calls it at each
/// pass, and reports the pass's observations. Single executor.
class content_gate {
 public:
  struct callbacks {
    /// Enqueues a runtime: it may take the content now.
    std::function<void(const k8s::object_key&)> requeue = {};
    /// Stores a content, by its digest, as the last one rolled out: runtimes without any content
    /// get it while they wait for their turn. Fails if KCP has another content by now.
    std::function<boost::asio::awaitable<k8s::result<void>>(std::string digest)> store = {};
  };

  virtual ~content_gate() = default;

  /// Called before the gate runs; the callees must outlive its run.
  virtual void attach(callbacks to) = 0;

  /// Records a runtime that shares content with others, by the resource with its status. Returns
  /// true if it may get `desired.newest`.
  virtual bool admit(const boost::json::value& resource, const shared_content& content,
                     const content_revisions& desired) = 0;

  /// Records the result of a pass. `ahead`: another writer has applied the newest content, or a
  /// part of it, to a runtime that was not admitted.
  virtual void observe(const boost::json::value& resource, bool ahead) = 0;

  /// Records that the runtime no longer shares content with others.
  virtual void leave(const k8s::object_key& runtime) = 0;
};

}  // namespace rw
