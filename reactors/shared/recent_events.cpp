#include "rw/reactors/shared/recent_events.hpp"

#include "rw/core/text.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace rw {
namespace {

std::string name_of(std::string_view kind, std::string_view ns, std::string_view name) {
  std::string out(kind);
  out.append(1, '/').append(ns).append(1, '/').append(name);
  return out;
}

}  // namespace

void recent_events::record(k8s::event_note note) noexcept {
  keep(note);
  sink_.record(std::move(note));
}

void recent_events::keep(const k8s::event_note& note) {
  const auto now = std::chrono::floor<std::chrono::seconds>(clock_.wall()).time_since_epoch();
  const auto& about = note.about;
  entry made{name_of(about.kind, about.ns, about.name),
             {.at = static_cast<std::uint32_t>(now.count()),
              .type = note.type,
              .kind = about.kind,
              .reason = note.reason,
              .message = core::middle_cut(note.message, max_message)}};
  auto& all = by_object_[made.object];
  const auto same = std::ranges::find_if(all, [&](position each) {
    const auto& event = each->event;
    return event.type == made.event.type && event.reason == made.event.reason &&
           event.message == made.event.message;
  });
  if (same != all.end()) {
    made.event.count += (*same)->event.count;
    forget(*same);
  } else if (all.size() == max_of_object) {
    forget(all.front());
  }
  bytes_ += size_of(made);
  entries_.push_back(std::move(made));
  // The last one of an object takes its list with it.
  by_object_[entries_.back().object].push_back(std::prev(entries_.end()));
  while (bytes_ > max_bytes_) forget(entries_.begin());
}

std::vector<recent_event> recent_events::of(std::string_view kind,
                                            const k8s::object_key& object) const {
  std::vector<recent_event> out;
  const auto found = by_object_.find(name_of(kind, object.ns, object.name));
  if (found == by_object_.end()) return out;
  for (auto each = found->second.rbegin(); each != found->second.rend(); ++each) {
    out.push_back((*each)->event);
  }
  return out;
}

/// With what the containers need for it.
std::size_t recent_events::size_of(const entry& of) noexcept {
  constexpr std::size_t containers = 160;
  return sizeof(entry) + containers + 2 * of.object.size() + of.event.kind.size() +
         of.event.reason.size() + of.event.message.size();
}

void recent_events::forget(position at) {
  const auto found = by_object_.find(at->object);
  std::erase(found->second, at);
  if (found->second.empty()) by_object_.erase(found);
  bytes_ -= size_of(*at);
  entries_.erase(at);
}

boost::json::array json_of(const std::vector<recent_event>& of) {
  boost::json::array out;
  for (const auto& each : of) {
    boost::json::object shown{
        {"at", each.at},
        {"type", each.type == k8s::event_type::warning ? "Warning" : "Normal"},
        {"reason", each.reason},
        {"message", each.message},
        {"about", each.kind}};
    if (each.count > 1) shown["count"] = each.count;
    out.push_back(std::move(shown));
  }
  return out;
}

}  // namespace rw
