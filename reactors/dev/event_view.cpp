#include "rw/reactors/dev/event_view.hpp"

#include "rw/core/json_text.hpp"
#include "rw/k8s/objects/types.hpp"

#include <cstdio>
#include <utility>

namespace rw::dev {
namespace {

std::string in_milliseconds(core::duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", std::chrono::duration<double, std::milli>(time).count());
  return text;
}

void append_member(std::string& out, std::string_view name, std::string_view value) {
  if (out.size() > 1) out += ',';
  core::append_json_string(out, name);
  out += ':';
  core::append_json_string(out, value);
}

void append_time(std::string& out, std::string_view name, std::optional<core::duration> value) {
  out += ",\"" + std::string(name) + "\":" + (value ? in_milliseconds(*value) : "null");
}

}  // namespace

std::string line_of(const event_trace& of, std::chrono::system_clock::time_point now) {
  // The time of day of "2026-11-21T09:00:00.123456Z", in milliseconds.
  auto out = k8s::format_micro_time(now).substr(11, 12) + "  " + of.runtime + ": ";
  if (of.resync) {
    out.append("any object may have changed (").append(to_string(*of.resync)) += ')';
  } else {
    out += of.event.gvk.kind + " " + to_string(of.event.watched) + " changed";
  }
  if (of.kyma.empty()) return out + (of.heard ? "; no Kyma has this runtime's id yet" : "");
  out += " -> Kyma " + of.kyma + " reconciled";
  if (!of.to_reconcile) return out;
  out += " " + in_milliseconds(*of.to_reconcile) + " ms after it";
  if (of.heard) out += " (KCP heard of it after " + in_milliseconds(*of.heard) + " ms)";
  return out;
}

std::string json_line_of(const event_trace& of, std::chrono::system_clock::time_point now) {
  std::string out = "{";
  append_member(out, "time", k8s::format_micro_time(now));
  append_member(out, "runtime", of.runtime);
  append_member(out, "manager", of.event.manager);
  if (of.resync) append_member(out, "resync", to_string(*of.resync));
  append_member(out, "apiVersion", of.event.gvk.api_version());
  append_member(out, "kind", of.event.gvk.kind);
  append_member(out, "namespace", of.event.watched.ns);
  append_member(out, "name", of.event.watched.name);
  append_member(out, "kyma", of.kyma);
  out += std::string(",\"reconciled\":") + (of.reconciled ? "true" : "false");
  append_time(out, "heardAfterMs", of.heard);
  append_time(out, "reconciledAfterMs", of.to_reconcile);
  return out + "}";
}

std::size_t event_view::key_hash::operator()(const key& of) const noexcept {
  return std::hash<std::string>{}(of.runtime) * 31 + watch_event_hash{}(of.event);
}

event_view::event_view(core::clock& clock, core::metrics& metrics, bool to_reconcile,
                       std::function<void(const event_trace&)> tell)
    : clock_(clock),
      forgotten_(core::make_counter(metrics, "rw_dev_stories_forgotten_total",
                                    "Number of events whose trace was dropped before its end")),
      to_reconcile_(to_reconcile),
      tell_(std::move(tell)) {}

void event_view::changed(const std::string& runtime, const watch_event& event) {
  if (!to_reconcile_) return tell_({.runtime = runtime, .event = event});
  const auto now = clock_.now();
  const auto [at, added] = changes_.try_emplace(key{runtime, event}, now);
  if (!added) return;  // coalesced with an event under way
  order_.push_back({at->first, now});
  while (order_.size() > most) forget_oldest();
}

void event_view::forget_oldest() {
  const auto& [oldest, since] = order_.front();
  const auto found = changes_.find(oldest);
  // Its event may have ended already, and a later one of the same object be under way.
  if (found != changes_.end() && found->second == since) {
    changes_.erase(found);
    forgotten_.Increment();
  }
  order_.pop_front();
}

void event_view::on_event(const listener::received_event& event,
                          const std::vector<k8s::object_key>& kymas) {
  const auto now = clock_.now();
  event_trace trace{.runtime = event.runtime_id, .event = event.event, .resync = event.resync};
  std::optional<core::time_point> since;
  if (auto known = changes_.extract(key{event.runtime_id, event.event}); !known.empty()) {
    since = known.mapped();
  }
  trace.heard = since ? now - *since : core::duration::zero();
  if (kymas.empty()) return tell_(trace);
  for (const auto& kyma : kymas) {
    if (heard_count_ >= most) {
      forgotten_.Increment();
      continue;
    }
    trace.kyma = to_string(kyma);
    heard_[kyma].push_back({trace, since});
    ++heard_count_;
  }
}

void event_view::reconciling(const k8s::object_key& kyma) {
  auto begun = heard_.extract(kyma);
  if (begun.empty()) return;
  const auto now = clock_.now();
  heard_count_ -= begun.mapped().size();
  for (auto& begun_event : begun.mapped()) {
    begun_event.trace.reconciled = true;
    if (begun_event.since) {
      begun_event.trace.to_reconcile = now - *begun_event.since;
    } else {
      begun_event.trace.heard.reset();
    }
    tell_(begun_event.trace);
  }
}

}  // namespace rw::dev
