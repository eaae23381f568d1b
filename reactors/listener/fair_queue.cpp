#include "rw/reactors/listener/fair_queue.hpp"

#include <tuple>
#include <utility>

namespace rw::listener {

bool fair_queue::before::operator()(const pending& a, const pending& b) const noexcept {
  const auto key = [](const pending& of) {
    const auto& [manager, gvk, watched, owner] = of.event;
    return std::tie(watched.name, watched.ns, gvk.kind, gvk.group, gvk.version, owner.name,
                    owner.ns, of.contract);
  };
  return key(a) < key(b);
}

offer_result fair_queue::offer(const std::string& runtime_id, rw::contract contract,
                               watch_event event, core::time_point now) {
  pending pending{contract, std::move(event), now};
  const auto known = shares_.find(runtime_id);
  const auto own = known == shares_.end() ? 0 : known->second.events.size();
  if (own > 0 && known->second.events.contains(pending)) return offer_result::merged;
  if (own >= runtime_events_) return offer_result::share_full;
  const auto third = events_ / 3;
  const auto bound = own == 0 ? events_ : (own < third / turns_.size() ? 2 * third : third);
  if (size_ >= bound) return offer_result::full;
  const auto at = own > 0 ? known : shares_.try_emplace(runtime_id).first;
  auto& [events, order] = at->second;
  order.push_back(events.insert(std::move(pending)).first);
  if (own == 0) turns_.push_back(at);
  ++size_;
  return offer_result::added;
}

std::optional<fair_queue::taken> fair_queue::take() {
  if (turns_.empty()) return {};
  const auto turn = turns_.front();
  auto& [events, order] = turn->second;
  auto node = events.extract(order.front());
  auto& [contract, event, since] = node.value();
  taken out{{contract, turn->first, std::move(event)}, since};
  order.pop_front();
  if (order.empty()) {
    turns_.pop_front();
    shares_.erase(turn);
  } else {
    turns_.splice(turns_.end(), turns_, turns_.begin());
  }
  --size_;
  return out;
}

}  // namespace rw::listener
