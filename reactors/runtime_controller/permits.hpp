#pragma once

#include "rw/core/metrics.hpp"
#include "rw/k8s/objects/names.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <unordered_set>
#include <utility>

namespace rw {

/// A fair semaphore for keys: a few permits, and a queue of the keys that wait for one. Keys need
/// not poll: a released permit is reserved for the key at the head of the queue, which is then
/// enqueued for a reconcile and acquires it there.
///
/// Metric: `<prefix>_unhealthy_waiting`, the number of waiting keys.
///
/// Not thread-safe.
class permits {
 public:
  /// Enqueues `key`, which holds a reserved permit. Returns false to pass the permit on.
  using enqueue = std::function<bool(const k8s::object_key&)>;

  permits(core::metrics& registry, const std::string& prefix, std::size_t count, enqueue next);
  permits(const permits&) = delete;
  permits& operator=(const permits&) = delete;

  /// Released when it is destroyed; the semaphore must outlive it.
  class permit {
   public:
    permit() = default;
    permit(permit&& from) noexcept : owner_(std::exchange(from.owner_, nullptr)) {}
    permit& operator=(permit&& from) noexcept {
      auto* const old = std::exchange(owner_, std::exchange(from.owner_, nullptr));
      if (old != nullptr) old->release();
      return *this;
    }
    ~permit() {
      if (owner_ != nullptr) owner_->release();
    }
    explicit operator bool() const noexcept { return owner_ != nullptr; }

   private:
    friend class permits;
    explicit permit(permits& from) : owner_(&from) {}

    permits* owner_ = nullptr;
  };

  /// The permit that is reserved for the key; empty if none is. A key that was enqueued must call
  /// this, even if it no longer needs the permit.
  permit claim(const k8s::object_key& key);

  /// A reserved or free permit. Empty if there is none: then the key joins the queue.
  permit acquire(const k8s::object_key& key);

  /// Joins the queue; the key is enqueued in its turn, which may be now.
  void request(const k8s::object_key& key);

  std::size_t waiting() const noexcept { return queue_.size(); }

 private:
  using keys = std::unordered_set<k8s::object_key, k8s::object_key_hash>;

  void release();
  void join_queue(const k8s::object_key& key);
  void publish() { gauge_.Set(static_cast<double>(queue_.size())); }

  const std::size_t count_;
  const enqueue next_;
  core::gauge& gauge_;
  std::size_t used_ = 0;  ///< the reserved ones included
  std::deque<k8s::object_key> queue_;
  keys queued_;
  keys reserved_;
};

}  // namespace rw
