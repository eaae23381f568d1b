#include "rw/k8s/devserver/conversion.hpp"

#include <boost/json/object.hpp>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

struct renamed {
  std::string_view core;
  std::string_view events;
};

// Field names of events.k8s.io/v1, Event, and of core/v1, Event.
constexpr std::array event_fields{
    renamed{"involvedObject", "regarding"},
    renamed{"message", "note"},
    renamed{"reportingComponent", "reportingController"},
    renamed{"source", "deprecatedSource"},
    renamed{"firstTimestamp", "deprecatedFirstTimestamp"},
    renamed{"lastTimestamp", "deprecatedLastTimestamp"},
    renamed{"count", "deprecatedCount"},
};

void rename(json::object& in, std::string_view from, std::string_view to) {
  auto* value = in.if_contains(from);
  if (value == nullptr) return;
  auto moved = std::move(*value);
  in.erase(from);
  in[to] = std::move(moved);
}

}  // namespace

namespace {

/// Without a webhook an object of another version has what both versions' schemas have.
void prune(json::value& object, const served_version& to) {
  if (!to.type) return;
  std::vector<std::string> removed;
  to.type->prune(object, removed);
}

}  // namespace

bool renames_fields(const served_resource& in) noexcept {
  return in.of->group == "events.k8s.io";
}

void to_view(json::value& object, const served_resource& in) {
  auto& fields = object.as_object();
  fields["apiVersion"] = in.api_version();
  if (in.of->custom && in.version != &in.of->versions[in.of->stored]) prune(object, *in.version);
  if (!renames_fields(in)) return;
  for (const auto& event_field : event_fields) rename(fields, event_field.core, event_field.events);
}

void to_stored(json::value& object, const served_resource& from) {
  auto& fields = object.as_object();
  if (!renames_fields(from)) {
    fields["apiVersion"] = from.of->stored_api_version();
    const auto& stored = from.of->versions[from.of->stored];
    if (!from.of->custom || from.version == &stored) return;
    prune(object, stored);
    // Defaults are those of the stored version, in whichever version an object is read.
    if (stored.type) {
      stored.type->drop_nulls(object);
      stored.type->fill_defaults(object);
    }
    return;
  }
  fields["apiVersion"] = "v1";
  for (const auto& event_field : event_fields) rename(fields, event_field.events, event_field.core);
}

}  // namespace rw::k8s::devserver
