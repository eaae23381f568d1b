#include "rw/core/http/memory_policy.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace rw::http {

namespace asio = boost::asio;

using std::memory_order_relaxed;

account::account(memory_policy& owner, asio::any_io_executor executor, asio::ip::address from,
                 core::time_point now)
    : memory_(owner),
      executor_(std::move(executor)),
      address_(std::move(from)),
      since_(now.time_since_epoch().count()) {}

account::~account() {
  memory_.remove(*this);
}

void account::enter(phase next, core::time_point since) noexcept {
  since_.store(since.time_since_epoch().count(), memory_order_relaxed);
  if (phase_.load(memory_order_relaxed) == next) return;
  if (phase_.exchange(next, memory_order_relaxed) == phase::handshake) {
    memory_.handshakes_.fetch_sub(1, memory_order_relaxed);
  }
}

void account::hold(std::size_t bytes, core::time_point now) {
  const auto before = held();
  if (bytes == before) return;
  held_.store(bytes, memory_order_relaxed);
  const auto total = memory_.held_.fetch_add(bytes - before, memory_order_relaxed) + bytes - before;
  if (bytes > before && total > memory_.limits_.bytes) memory_.make_room(now);
}

std::shared_ptr<account> memory_policy::open(asio::any_io_executor executor, asio::ip::address from,
                                             core::time_point now) {
  const auto opened = std::make_shared<account>(*this, std::move(executor), std::move(from), now);
  std::shared_ptr<account> victim;
  {
    const std::lock_guard lock(guard_);
    victim = choose_victim();
    if (!victim && open_.size() - closing_ >= limits_.connections) return nullptr;
    opened->place_ = open_.size();
    opened->number_ = ++numbers_;
    open_.push_back(opened.get());
    handshakes_.fetch_add(1, memory_order_relaxed);
    gauge_.Set(static_cast<double>(open_.size()));
  }
  if (victim) {
    asio::dispatch(victim->executor_, [weak = std::weak_ptr(victim)] {
      const auto owner = weak.lock();
      if (owner && owner->owner_ != nullptr) owner->owner_->evict(0);
    });
  }
  return opened;
}

/// Null if there is room, or nobody who could go.
std::shared_ptr<account> memory_policy::choose_victim() {
  account* found = nullptr;
  if (handshakes_.load(memory_order_relaxed) >= limits_.handshakes) {
    found = oldest_handshake();
  } else if (open_.size() - closing_ >= limits_.connections) {
    found = longest_idle();
  }
  auto victim = found != nullptr ? found->weak_from_this().lock() : nullptr;
  if (!victim) return nullptr;
  victim->closing_ = true;
  ++closing_;
  // Its place among the handshakes is free at once.
  victim->enter(account::phase::idle, core::time_point());
  return victim;
}

account* memory_policy::oldest_handshake() const {
  struct share {
    std::size_t count = 0;
    account* oldest = nullptr;
  };
  std::map<asio::ip::address, share> shares;
  share* largest = nullptr;
  for (auto* const each : open_) {
    if (each->closing_ || each->phase_.load(memory_order_relaxed) != account::phase::handshake) {
      continue;
    }
    auto& own = shares[each->address_];
    ++own.count;
    if (own.oldest == nullptr || each->number_ < own.oldest->number_) own.oldest = each;
    if (largest == nullptr || own.count > largest->count) largest = &own;
  }
  return largest != nullptr ? largest->oldest : nullptr;
}

/// Of those between requests, or else of those whose request makes no progress.
account* memory_policy::longest_idle() const {
  const auto rank = [](const account* a) {
    const bool receiving = a->phase_.load(memory_order_relaxed) == account::phase::receiving;
    return std::tuple(receiving, a->since_.load(memory_order_relaxed), a->number_);
  };
  account* found = nullptr;
  for (auto* const each : open_) {
    if (each->closing_ || each->phase_.load(memory_order_relaxed) == account::phase::handling) {
      continue;
    }
    if (found == nullptr || rank(each) < rank(found)) found = each;
  }
  return found;
}

void memory_policy::remove(account& gone) noexcept {
  held_.fetch_sub(gone.held(), memory_order_relaxed);
  const std::lock_guard lock(guard_);
  if (gone.place_ == account::unplaced) return;
  gone.enter(account::phase::idle, core::time_point());
  if (gone.closing_) --closing_;
  open_.back()->place_ = gone.place_;
  open_[gone.place_] = open_.back();
  open_.pop_back();
  gauge_.Set(static_cast<double>(open_.size()));
}

void memory_policy::make_room(core::time_point now) {
  std::vector<std::pair<double, std::shared_ptr<account>>> candidates;
  {
    const std::lock_guard lock(guard_);
    for (auto* const each : open_) {
      const auto held = each->held();
      const auto phase = each->phase_.load(memory_order_relaxed);
      if (held == 0 || phase != account::phase::receiving) continue;
      const auto since = core::duration(each->since_.load(memory_order_relaxed));
      const auto still = now.time_since_epoch() - since + std::chrono::milliseconds(1);
      auto alive = each->weak_from_this().lock();
      if (alive) candidates.emplace_back(static_cast<double>(held) * still.count(), alive);
    }
  }
  std::ranges::sort(candidates, [](const auto& a, const auto& b) { return a.first > b.first; });
  // Some room to spare, so that not every request that follows has to look again.
  const auto enough = limits_.bytes - limits_.bytes / 16;
  auto left = held();
  for (const auto& [score, owner] : candidates) {
    if (left <= enough) break;
    const auto bytes = left - enough;
    left -= std::min(left, owner->held());
    asio::dispatch(owner->executor_, [weak = std::weak_ptr(owner), bytes] {
      const auto alive = weak.lock();
      if (alive && alive->owner_ != nullptr) alive->owner_->evict(bytes);
    });
  }
}

void memory_policy::for_each(void (account_owner::*action)()) {
  std::vector<std::shared_ptr<account>> alive;
  {
    const std::lock_guard lock(guard_);
    for (auto* const each : open_) {
      if (auto found = each->weak_from_this().lock()) alive.push_back(std::move(found));
    }
  }
  // An account must not outlive the memory policy, so what is queued owns none.
  for (const auto& each : alive) {
    asio::post(each->executor_, [action, weak = std::weak_ptr(each)] {
      const auto owner = weak.lock();
      if (owner && owner->owner_ != nullptr) (owner->owner_->*action)();
    });
  }
}

std::size_t memory_policy::connections() const {
  const std::lock_guard lock(guard_);
  return open_.size();
}

}  // namespace rw::http
