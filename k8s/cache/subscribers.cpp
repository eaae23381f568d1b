#include "rw/k8s/cache/subscribers.hpp"

#include "rw/k8s/cache/pending_deltas.hpp"

#include <algorithm>
#include <utility>

namespace rw::k8s {

namespace asio = boost::asio;

struct subscribers::subscriber {
  std::weak_ptr<core::channel<delta>> channel;
  pending_deltas pending;
  bool waiting = false;  ///< a delta, older than those pending, waits for room
  bool gone = false;
};

subscribers::subscription subscribers::add(std::size_t capacity, const store& objects) {
  auto channel = std::make_shared<core::channel<delta>>(capacity);
  if (closed_) {
    channel->close();
    return channel;
  }
  const auto added = std::make_shared<subscriber>();
  added->channel = channel;
  list_.push_back(added);
  objects.for_each([&](const object& each) { tell(added, {}, each); });
  return channel;
}

void subscribers::tell(const object& before, const object& now) {
  for (const auto& each : list_) tell(each, before, now);
  std::erase_if(list_, [](const auto& each) { return each->gone; });
}

void subscribers::tell(const std::shared_ptr<subscriber>& to, const object& before,
                       const object& now) {
  const auto channel = to->channel.lock();
  to->gone = to->gone || !channel || channel->is_closed();
  if (to->gone) return;
  const bool remade = before && now && before.uid() != now.uid();
  if (to->pending.empty() && !to->waiting && !remade) {
    // As nearly always: nothing is kept.
    const auto kind = !before ? delta::kind::added
                      : now   ? delta::kind::updated
                              : delta::kind::deleted;
    if (channel->try_send({kind, before, now}) == core::send_status::sent) return;
  }
  to->pending.note(before, now);
  if (!to->waiting) {
    send_pending(to, channel);
  } else if (channel.use_count() == 2) {
    // Only this function and the pump hold it.
    channel->close();
  }
}

void subscribers::send_pending(const std::shared_ptr<subscriber>& to, const subscription& channel) {
  while (!to->pending.empty()) {
    auto next = to->pending.take();
    const auto status = channel->try_send(next);
    if (status == core::send_status::sent) continue;
    if (status == core::send_status::full && tasks_ != nullptr) {
      to->waiting = true;
      tasks_->spawn(pump(to, channel, std::move(next)));
      return;
    }
    to->gone = true;
    channel->close();
    return;
  }
}

asio::awaitable<void> subscribers::pump(std::shared_ptr<subscriber> to, subscription channel,
                                        delta next) {
  for (;;) {
    const auto error = co_await channel->send(std::move(next));
    if (error) {
      to->gone = true;
      co_return;
    }
    to->waiting = !to->pending.empty();
    if (to->waiting) next = to->pending.take();
    on_taken_();
    if (!to->waiting) co_return;
  }
}

void subscribers::close() {
  closed_ = true;
  for (const auto& each : list_) {
    if (const auto channel = each->channel.lock()) channel->close();
  }
  list_.clear();
}

std::size_t subscribers::pending() const noexcept {
  std::size_t sum = 0;
  for (const auto& each : list_) sum += each->pending.size() + (each->waiting ? 1 : 0);
  return sum;
}

}  // namespace rw::k8s
