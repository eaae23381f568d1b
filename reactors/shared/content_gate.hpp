#pragma once

#include "k8s/objects/failure.hpp"
#include "k8s/objects/names.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
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

enum class content_health : std::uint8_t { progressing, ready, failed, unreachable };

/// What is known of one runtime. What has no value is as it was noted before; a runtime whose
/// health was never noted counts as unreachable.
struct content_facts {
  std::optional<std::string> in_place = {};  ///< revision that it has; empty: none
  std::optional<content_health> health = {};
  /// Of the health, or of the revision in place if that is later; none: when the gate noted it.
  std::optional<std::chrono::system_clock::time_point> since = {};
  std::string rejected = {};  ///< revision that it does not take; empty: none
  std::string error = {};     ///< of one that fails, for people
  /// Another writer has brought the newest content, or a part of it, though it was not admitted.
  bool ahead = false;
};

/// Decides which runtimes may take a content. Whoever writes to runtimes asks it at each pass, and
/// tells it what the pass found. Single executor.
class content_gate {
 public:
  struct callbacks {
    /// Enqueues a runtime: it may take the content now.
    std::function<void(const k8s::object_key&)> requeue = {};
    /// Stores a content, by its digest, as the one that was rolled out last: runtimes that wait for
    /// their turn and have nothing get it. Fails if KCP has another content by now. Empty:
    /// revisions are digests of contents, and the gate itself remembers the last one.
    std::function<boost::asio::awaitable<k8s::result<void>>(std::string digest)> store = {};
  };

  virtual ~content_gate() = default;

  /// To be called before the gate runs; what is called must outlive its run.
  virtual void attach(callbacks to) = 0;

  /// Notes a runtime that has content in common with the others. Returns true if it may take
  /// `desired.newest`.
  virtual bool admit(const k8s::object_key& runtime, const shared_content& content,
                     const content_revisions& desired, const content_facts& now) = 0;

  /// Notes what a pass left; nothing of a runtime that was never given to `admit`.
  virtual void observe(const k8s::object_key& runtime, const content_facts& now) = 0;

  /// The runtime has no content in common with the others any longer.
  virtual void leave(const k8s::object_key& runtime) = 0;
};

}  // namespace rw
