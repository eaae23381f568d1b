#pragma once

#include "rw/core/channel.hpp"
#include "rw/core/task_group.hpp"
#include "rw/k8s/cache/store.hpp"
#include "rw/k8s/objects/delta.hpp"
#include "rw/k8s/objects/object.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace rw::k8s {

/// Who is told of an informer's changes, each through a channel of its own. As long as there is
/// room in it changes go straight there; then they wait, coalesced (pending_deltas), and follow
/// when the subscriber takes some. On one executor; subscribers may be anywhere.
class subscribers {
 public:
  using subscription = std::shared_ptr<core::channel<delta>>;

  /// `on_taken` is called whenever something that was pending has found room.
  explicit subscribers(std::function<void()> on_taken) : on_taken_(std::move(on_taken)) {}

  /// A channel that tells first of all that is in `objects`. It is kept as long as somebody else
  /// keeps it, and it is open.
  subscription add(std::size_t capacity, const store& objects);

  /// Tells all that an object went from `before` to `now`, of which one may be empty.
  void tell(const object& before, const object& now);

  /// Where what is to wait for room does so; must live as long as its tasks. Null: nowhere yet, or
  /// any more.
  void run_in(core::task_group* tasks) noexcept { tasks_ = tasks; }

  /// Ends all subscriptions, and those that are added later at once.
  void close();

  /// Deltas that have no room in their channels.
  std::size_t pending() const noexcept;

 private:
  struct subscriber;

  void tell(const std::shared_ptr<subscriber>& to, const object& before, const object& now);
  void send_pending(const std::shared_ptr<subscriber>& to, const subscription& channel);
  boost::asio::awaitable<void> pump(std::shared_ptr<subscriber> to, subscription channel,
                                    delta next);

  const std::function<void()> on_taken_;

  std::vector<std::shared_ptr<subscriber>> list_;
  core::task_group* tasks_ = nullptr;
  bool closed_ = false;
};

}  // namespace rw::k8s
