#include "rw/reactors/intake/fair_queue.hpp"

#include <memory>
#include <tuple>
#include <utility>

namespace rw::listener {

fair_queue::~fair_queue() {
  for (auto& [runtime_id, each] : shares_) {
    each.by_key.clear();
    each.in_order.clear_and_dispose(std::default_delete<pending>());
  }
}

bool fair_queue::before::operator()(const watch_event& a, const watch_event& b) const noexcept {
  const int names = a.watched.name.compare(b.watched.name);
  if (names != 0) return names < 0;
  const auto rest = [](const watch_event& of) {
    return std::tie(of.watched.ns, of.gvk.kind, of.gvk.group, of.gvk.version);
  };
  return rest(a) < rest(b);
}

offer_result fair_queue::offer(const std::string& runtime_id, watch_event&& event,
                               core::time_point now) {
  const auto known = shares_.find(runtime_id);
  const bool has_some = known != shares_.end();
  const auto own = has_some ? known->second.by_key.size() : 0;
  decltype(share::by_key)::insert_commit_data place;
  const auto is_new = [&](share& of) { return of.by_key.insert_check(event, place).second; };
  if (has_some && !is_new(known->second)) return offer_result::merged;
  if (own >= runtime_events_) return offer_result::share_full;
  const auto third = events_ / 3;
  const auto bound = own == 0 ? events_ : (own < third / turns_.size() ? 2 * third : third);
  if (size_ >= bound) return offer_result::full;
  // All that may throw comes before what is changed.
  auto made = std::make_unique<pending>(now);
  std::list<share_map::iterator> turn(has_some ? 0 : 1);
  const auto at = has_some ? known : shares_.try_emplace(runtime_id).first;
  turns_.splice(turns_.end(), turn);
  if (!has_some) {
    turns_.back() = at;
    is_new(at->second);
  }
  made->event = std::move(event);
  at->second.by_key.insert_commit(*made, place);
  at->second.in_order.push_back(*made.release());
  ++size_;
  return offer_result::added;
}

std::optional<fair_queue::taken> fair_queue::take() {
  std::optional<taken> out;
  if (turns_.empty()) return out;
  const auto turn = turns_.front();
  auto& [event, since] = out.emplace();
  event.runtime_id = turn->first;
  auto& [by_key, in_order] = turn->second;
  const std::unique_ptr<pending> oldest(&in_order.front());
  in_order.pop_front();
  by_key.erase(by_key.iterator_to(*oldest));
  event.event = std::move(oldest->event);
  since = oldest->since;
  if (in_order.empty()) {
    turns_.pop_front();
    shares_.erase(turn);
  } else {
    turns_.splice(turns_.end(), turns_, turns_.begin());
  }
  --size_;
  return out;
}

}  // namespace rw::listener
