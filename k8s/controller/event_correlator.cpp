#include "rw/k8s/controller/event_correlator.hpp"

#include "rw/core/text.hpp"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <utility>

namespace rw::k8s {
namespace {

namespace json = boost::json;
using wall_time = std::chrono::system_clock::time_point;

constexpr std::size_t message_limit = 1024;
constexpr std::size_t name_limit = 253;  // of a DNS subdomain (RFC 1123)

/// Joins strings with a separator that none of them contains.
std::string join(std::initializer_list<std::string_view> parts) {
  std::string joined;
  for (const auto part : parts) joined.append(part).push_back('\0');
  return joined;
}

std::string_view name_of(event_type type) {
  return type == event_type::warning ? "Warning" : "Normal";
}

json::value write_reference(const object_reference& to) {
  json::object made{{"apiVersion", to.api_version}, {"kind", to.kind}, {"name", to.name}};
  if (!to.ns.empty()) made["namespace"] = to.ns;
  if (!to.uid.empty()) made["uid"] = to.uid;
  if (!to.resource_version.empty()) made["resourceVersion"] = to.resource_version;
  return made;
}

}  // namespace

json::value event_correlator::write::change() const {
  json::object change;
  for (const auto* field : {"count", "lastTimestamp", "message"}) {
    change[field] = *find(object, {field});
  }
  return change;
}

event_correlator::event_correlator(std::string component, std::string instance, event_limits limits)
    : component_(std::move(component)),
      instance_(std::move(instance)),
      limits_(limits),
      buckets_(std::max<std::size_t>(limits.remembered, 1)),
      similar_(std::max<std::size_t>(limits.remembered, 1)),
      written_(std::max<std::size_t>(limits.remembered, 1)) {}

std::optional<event_correlator::write> event_correlator::next(const event_note& note,
                                                              core::time_point now,
                                                              wall_time wall) {
  const auto& about = note.about;
  const auto object = join({about.api_version, about.kind, about.ns, about.name, about.uid});
  const auto kind = object + join({name_of(note.type), note.reason});

  auto& similar = similar_.use(kind);
  if (now - similar.last > limits_.similar_for) similar.messages.clear();
  similar.last = now;
  auto message = core::middle_cut(note.message, message_limit);
  similar.messages.insert(message);
  const bool combined = similar.messages.size() >= limits_.similar;
  if (combined) {
    similar.messages.erase(similar.messages.begin());
    message = "(combined from similar events): " + message;
  }

  auto& known = written_.use(combined ? kind : kind + message);
  const auto time = format_time(wall);
  const bool repeated = known.count++ > 0;
  if (!repeated) {
    known.name = unique_name(about.name, wall);
    known.first_time = time;
  }
  // The correlator still counts a dropped event, and the next one that passes carries the count.
  const double rate = limits_.every.count() > 0 ? 1.0 / double(limits_.every.count()) : 0;
  if (!buckets_.use(object, rate, limits_.burst).try_take(now)) return std::nullopt;
  return write{object_of(note, known, message, time), repeated};
}

std::string event_correlator::unique_name(const std::string& object, wall_time wall) {
  const auto nanos =
      std::chrono::duration_cast<std::chrono::nanoseconds>(wall.time_since_epoch()).count();
  last_stamp_ = std::max<std::int64_t>(last_stamp_ + 1, nanos);
  char stamp[24];
  const auto length =
      std::snprintf(stamp, sizeof stamp, ".%llx", static_cast<unsigned long long>(last_stamp_));
  return std::string(core::first_bytes(object, name_limit - static_cast<std::size_t>(length))) +
         stamp;
}

json::value event_correlator::object_of(const event_note& note, const written_event& known,
                                        std::string_view message, const std::string& time) const {
  const auto& type = events_type();
  json::object source{{"component", component_}};
  if (!instance_.empty()) source["host"] = instance_;
  return json::object{
      {"apiVersion", type.gvk.api_version()},
      {"kind", type.gvk.kind},
      {"metadata",
       {{"namespace", note.about.ns.empty() ? "default" : note.about.ns}, {"name", known.name}}},
      {"involvedObject", write_reference(note.about)},
      {"type", name_of(note.type)},
      {"reason", note.reason},
      {"message", message},
      {"source", std::move(source)},
      {"reportingComponent", component_},
      {"reportingInstance", instance_},
      {"firstTimestamp", known.first_time},
      {"lastTimestamp", time},
      {"count", known.count}};
}

}  // namespace rw::k8s
