#pragma once

#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw {

/// An object in KCP that content was read from.
struct content_source {
  std::string kind = {};
  std::string name = {};
  std::string resource_version = {};

  friend bool operator==(const content_source&, const content_source&) = default;
};

/// The content that all runtimes share, in its state in KCP.
struct shared_content {
  std::string digest = {};
  bool at_once = false;  ///< it may go to all runtimes at once
  int wire_version =
      0;  ///< of a program in it that talks to this manager (wire_version.hpp); 0: none
  std::vector<content_source> sources = {};
  std::vector<content_source> waiting = {};  ///< sources with newer content, while one is pinned

  friend bool operator==(const shared_content&, const shared_content&) = default;
};

/// Revisions of a content that one runtime may get, as digests.
struct content_revisions {
  std::string newest = {};     ///< of the content in KCP; empty: it is invalid
  std::string completed = {};  ///< of the last content rolled out completely; empty: none was
};

enum class content_health : std::uint8_t { progressing, ready, failed, unreachable };

/// What is known of one runtime. A member without a value stays as it was recorded before; a
/// runtime whose health was never recorded counts as unreachable.
struct content_facts {
  std::optional<std::string> in_place = {};  ///< revision that it has; empty: none
  std::optional<content_health> health = {};
  /// Of the health, or of the revision in place if that is later; none: when the gate recorded it.
  std::optional<std::chrono::system_clock::time_point> since = {};
  std::string rejected = {};  ///< revision that it rejects; empty: none
  std::string error = {};     ///< of one that fails, for people
  /// Another writer has applied the newest content, or a part of it, though it was not admitted; it
  /// was then completed.
  bool ahead = false;
};

/// Decides which runtimes may get a content. A reactor that writes to runtimes calls it at each
/// pass, and reports the pass's observations. Single executor.
class content_gate {
 public:
  struct callbacks {
    /// Enqueues a runtime: it may take the content now.
    std::function<void(const k8s::object_key&)> requeue = {};
    /// Stores a content, by its digest, as the last one rolled out: runtimes without any content
    /// get it while they wait for their turn. Called again after a restart. Fails if KCP has
    /// another content by now.
    std::function<boost::asio::awaitable<k8s::result<void>>(std::string digest)> store = {};
    /// Keeps the content in KCP, by its digest, so that it can be pinned later. Null: none can be.
    std::function<boost::asio::awaitable<k8s::result<void>>(std::string digest)> keep = {};
  };

  virtual ~content_gate() = default;

  /// Called before the gate runs; the callees must outlive its run.
  virtual void attach(callbacks to) = 0;

  /// Records a runtime that shares content with others. Returns true if it may get
  /// `desired.newest`.
  virtual bool admit(const k8s::object_key& runtime, const shared_content& content,
                     const content_revisions& desired, const content_facts& now) = 0;

  /// Returns false if the runtime may no longer get the content, by its digest, that it was
  /// admitted to: asked before what that changes is written, since other content may have come, or
  /// been pinned, while the pass was under way.
  virtual bool still_admits(const k8s::object_key& runtime, std::string_view content) const = 0;

  /// Returns the digest of the content that is rolled out in place of the one in KCP; empty: none.
  virtual std::string pinned() const = 0;

  /// Records that the pinned content can't be read, and why: nothing is rolled out then.
  virtual void note_unreadable(std::string_view pinned, std::string error) = 0;

  /// Returns false if a content that was kept can no longer be pinned.
  virtual bool may_be_pinned(std::string_view content) const = 0;

  /// Records that the sources of the content have changed, and perhaps nothing else.
  virtual void refresh(const shared_content& content) = 0;

  /// Records the result of a pass; ignored for a runtime that was never given to `admit`.
  virtual void observe(const k8s::object_key& runtime, const content_facts& now) = 0;

  /// Records that the runtime no longer shares content with others.
  virtual void leave(const k8s::object_key& runtime) = 0;
};

}  // namespace rw
