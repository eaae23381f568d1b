#include "rw/k8s/objects/types.hpp"

#include "rw/k8s/objects/base64.hpp"

#include <algorithm>
#include <cstdio>

namespace rw::k8s {
namespace {

namespace json = boost::json;
using std::chrono::system_clock;

std::string format(system_clock::time_point moment, bool micros) {
  const auto whole = std::chrono::floor<std::chrono::microseconds>(moment);
  const auto midnight = std::chrono::floor<std::chrono::days>(whole);
  const std::chrono::year_month_day date(midnight);
  const std::chrono::hh_mm_ss time(whole - midnight);
  char buffer[48];
  auto length = std::snprintf(
      buffer, sizeof buffer, "%04d-%02u-%02uT%02d:%02d:%02d", int{date.year()},
      unsigned{date.month()}, unsigned{date.day()}, static_cast<int>(time.hours().count()),
      static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()));
  if (micros) {
    length += std::snprintf(buffer + length, sizeof buffer - static_cast<std::size_t>(length),
                            ".%06d", static_cast<int>(time.subseconds().count()));
  }
  return std::string(buffer, static_cast<std::size_t>(length)) + "Z";
}

class scanner {
 public:
  explicit scanner(std::string_view text) : text_(text) {}

  /// Reads exactly `count` digits; -1 if there are fewer.
  int digits(std::size_t count) {
    int value = 0;
    if (text_.size() < count) return -1;
    for (std::size_t i = 0; i < count; ++i) {
      if (text_[i] < '0' || text_[i] > '9') return -1;
      value = value * 10 + (text_[i] - '0');
    }
    text_.remove_prefix(count);
    return value;
  }

  bool take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  bool at_digit() const { return !text_.empty() && text_.front() >= '0' && text_.front() <= '9'; }
  bool at_end() const { return text_.empty(); }

 private:
  std::string_view text_;
};

/// Reads digits after the point, as microseconds; -1 if there are none.
std::int64_t fraction(scanner& from) {
  if (!from.at_digit()) return -1;
  std::int64_t micros = 0;
  for (std::int64_t unit = 100'000; from.at_digit(); unit /= 10) micros += unit * from.digits(1);
  return micros;
}

/// Reads "Z" or an offset such as "+01:00".
std::optional<std::chrono::minutes> offset(scanner& from) {
  if (from.take('Z') || from.take('z')) return std::chrono::minutes(0);
  const bool east = from.take('+');
  if (!east && !from.take('-')) return std::nullopt;
  const auto hours = from.digits(2);
  if (!from.take(':')) return std::nullopt;
  const auto minutes = from.digits(2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return std::nullopt;
  const auto size = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return east ? size : -size;
}

/// Returns the object at `name`; makes it if it is missing.
json::object& child(json::object& of, std::string_view name) {
  auto& at = of[name];
  return at.is_object() ? at.get_object() : at.emplace_object();
}

json::array& child_array(json::object& of, std::string_view name) {
  auto& at = of[name];
  return at.is_array() ? at.get_array() : at.emplace_array();
}

json::object& root(json::value& object) {
  return object.is_object() ? object.get_object() : object.emplace_object();
}

json::object& metadata(json::value& object) {
  return child(root(object), "metadata");
}

bool find_bool(const json::value& in, std::string_view name) {
  const auto* const at = find(in, {name});
  return at != nullptr && at->is_bool() && at->get_bool();
}

/// Sets a string member. Returns false if it had that value already.
bool assign(json::object& in, std::string_view name, std::string_view to) {
  auto& at = in[name];
  if (at.is_string() && at.get_string() == to) return false;
  at = to;
  return true;
}

owner_reference read_owner(const json::value& from) {
  return {std::string(find_string(from, {"apiVersion"})),
          std::string(find_string(from, {"kind"})),
          std::string(find_string(from, {"name"})),
          std::string(find_string(from, {"uid"})),
          find_bool(from, "controller"),
          find_bool(from, "blockOwnerDeletion")};
}

json::value write_owner(const owner_reference& owner) {
  json::object made{{"apiVersion", owner.api_version},
                    {"kind", owner.kind},
                    {"name", owner.name},
                    {"uid", owner.uid}};
  if (owner.controller) made["controller"] = true;
  if (owner.block_owner_deletion) made["blockOwnerDeletion"] = true;
  return made;
}

}  // namespace

std::string format_time(system_clock::time_point time) {
  return format(time, false);
}

std::string format_micro_time(system_clock::time_point time) {
  return format(time, true);
}

std::optional<std::chrono::system_clock::time_point> parse_rfc3339(std::string_view text) {
  using namespace std::chrono;
  scanner from(text);
  const auto y = from.digits(4);
  if (!from.take('-')) return std::nullopt;
  const auto m = from.digits(2);
  if (!from.take('-')) return std::nullopt;
  const auto d = from.digits(2);
  if (!from.take('T') && !from.take('t') && !from.take(' ')) return std::nullopt;
  const auto hour = from.digits(2);
  if (!from.take(':')) return std::nullopt;
  const auto minute = from.digits(2);
  if (!from.take(':')) return std::nullopt;
  const auto second = from.digits(2);
  const auto micros = from.take('.') ? fraction(from) : 0;
  const auto zone = offset(from);
  const year_month_day date{year(y), month(static_cast<unsigned>(m)),
                            std::chrono::day(static_cast<unsigned>(d))};
  // 60 is a leap second.
  const bool good = y >= 1970 && y <= 2200 && m > 0 && d > 0 && date.ok() && hour >= 0 &&
                    hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second <= 60 &&
                    micros >= 0 && zone && from.at_end();
  if (!good) return std::nullopt;
  return sys_days(date) + hours(hour) + minutes(minute) + std::chrono::seconds(second) +
         microseconds(micros) - *zone;
}

const json::value* find(const json::value& in,
                        std::initializer_list<std::string_view> path) noexcept {
  const auto* at = &in;
  for (const auto name : path) {
    const auto* const object = at->if_object();
    at = object == nullptr ? nullptr : object->if_contains(name);
    if (at == nullptr) return nullptr;
  }
  return at;
}

std::string_view find_string(const json::value& in,
                             std::initializer_list<std::string_view> path) noexcept {
  const auto* const at = find(in, path);
  const auto* const text = at == nullptr ? nullptr : at->if_string();
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

std::int64_t find_number(const json::value& in,
                         std::initializer_list<std::string_view> path) noexcept {
  const auto* const at = find(in, path);
  return at != nullptr && at->is_int64() ? at->get_int64() : 0;
}

const json::array* find_array(const json::value& in,
                              std::initializer_list<std::string_view> path) noexcept {
  const auto* const at = find(in, path);
  return at == nullptr ? nullptr : at->if_array();
}

object_key key_of(const json::value& object) {
  return {std::string(find_string(object, {"metadata", "namespace"})),
          std::string(find_string(object, {"metadata", "name"}))};
}

std::string_view uid_of(const json::value& object) noexcept {
  return find_string(object, {"metadata", "uid"});
}

std::string_view resource_version_of(const json::value& object) noexcept {
  return find_string(object, {"metadata", "resourceVersion"});
}

std::int64_t generation_of(const json::value& object) noexcept {
  return find_number(object, {"metadata", "generation"});
}

std::optional<std::chrono::system_clock::time_point> created_at(const boost::json::value& object) {
  return parse_rfc3339(find_string(object, {"metadata", "creationTimestamp"}));
}

std::optional<std::chrono::system_clock::time_point> deleted_at(const boost::json::value& object) {
  return parse_rfc3339(find_string(object, {"metadata", "deletionTimestamp"}));
}

bool is_being_deleted(const json::value& object) noexcept {
  return !find_string(object, {"metadata", "deletionTimestamp"}).empty();
}

std::string_view label(const json::value& object, std::string_view name) noexcept {
  return find_string(object, {"metadata", "labels", name});
}

std::string_view annotation(const json::value& object, std::string_view name) noexcept {
  return find_string(object, {"metadata", "annotations", name});
}

bool has_label(const json::value& object, std::string_view name) noexcept {
  const auto* const at = find(object, {"metadata", "labels", name});
  return at != nullptr && at->is_string();
}

bool has_annotation(const json::value& object, std::string_view name) noexcept {
  const auto* const at = find(object, {"metadata", "annotations", name});
  return at != nullptr && at->is_string();
}

bool set_label(json::value& object, std::string_view name, std::string_view to) {
  return assign(child(metadata(object), "labels"), name, to);
}

bool set_annotation(json::value& object, std::string_view name, std::string_view to) {
  return assign(child(metadata(object), "annotations"), name, to);
}

bool has_finalizer(const json::value& object, std::string_view name) {
  const auto* const all = find_array(object, {"metadata", "finalizers"});
  return all != nullptr && std::ranges::any_of(*all, [&](const json::value& entry) {
           return entry.is_string() && entry.get_string() == name;
         });
}

bool add_finalizer(json::value& object, std::string_view name) {
  if (has_finalizer(object, name)) return false;
  child_array(metadata(object), "finalizers").emplace_back(name);
  return true;
}

bool remove_finalizer(json::value& object, std::string_view name) {
  if (!has_finalizer(object, name)) return false;
  auto& all = child_array(metadata(object), "finalizers");
  const auto* const left = std::remove_if(all.begin(), all.end(), [&](const json::value& entry) {
    return entry.is_string() && entry.get_string() == name;
  });
  all.erase(left, all.end());
  return true;
}

std::vector<owner_reference> owners_of(const json::value& object) {
  std::vector<owner_reference> owners;
  if (const auto* const all = find_array(object, {"metadata", "ownerReferences"})) {
    for (const auto& owner : *all) owners.push_back(read_owner(owner));
  }
  return owners;
}

bool set_owner(json::value& object, const owner_reference& owner) {
  auto& all = child_array(metadata(object), "ownerReferences");
  for (auto& condition : all) {
    const auto known = read_owner(condition);
    if (known.uid != owner.uid) continue;
    if (known == owner) return false;
    condition = write_owner(owner);
    return true;
  }
  all.push_back(write_owner(owner));
  return true;
}

object_reference reference_to(const json::value& object) {
  const auto key = key_of(object);
  return {std::string(find_string(object, {"apiVersion"})),
          std::string(find_string(object, {"kind"})),
          key.ns,
          key.name,
          std::string(uid_of(object)),
          std::string(resource_version_of(object))};
}

std::optional<condition> find_condition(const json::value& object, std::string_view type) {
  const auto* const all = find_array(object, {"status", "conditions"});
  if (all == nullptr) return std::nullopt;
  for (const auto& entry : *all) {
    if (find_string(entry, {"type"}) != type) continue;
    return condition{std::string(type), std::string(find_string(entry, {"status"})),
                     std::string(find_string(entry, {"reason"})),
                     std::string(find_string(entry, {"message"})),
                     find_number(entry, {"observedGeneration"})};
  }
  return std::nullopt;
}

bool set_condition(json::value& object, const condition& to, system_clock::time_point now) {
  auto& all = child_array(child(root(object), "status"), "conditions");
  auto* at = std::ranges::find_if(all, [&](const json::value& condition) {
    return find_string(condition, {"type"}) == to.type;
  });
  if (at == all.end()) {
    all.push_back(json::object{{"type", to.type}});
    at = all.end() - 1;
  }
  auto& condition = at->get_object();
  bool changed = assign(condition, "status", to.status);
  if (changed) condition["lastTransitionTime"] = format_time(now);
  changed = assign(condition, "reason", to.reason) || changed;
  changed = assign(condition, "message", to.message) || changed;
  if (to.observed_generation != 0 &&
      find_number(*at, {"observedGeneration"}) != to.observed_generation) {
    condition["observedGeneration"] = to.observed_generation;
    changed = true;
  }
  return changed;
}

const resource_type& leases_type() {
  static const resource_type type{{"coordination.k8s.io", "v1", "Lease"}, "leases", true};
  return type;
}

lease read_lease(const json::value& object) {
  return {std::string(find_string(object, {"spec", "holderIdentity"})),
          std::chrono::seconds(find_number(object, {"spec", "leaseDurationSeconds"})),
          parse_rfc3339(find_string(object, {"spec", "acquireTime"})),
          parse_rfc3339(find_string(object, {"spec", "renewTime"})),
          find_number(object, {"spec", "leaseTransitions"})};
}

void write_lease(json::value& object, const lease& spec) {
  auto& into = child(root(object), "spec");
  if (spec.holder.empty()) {
    into.erase("holderIdentity");  // newer API servers reject an empty one
  } else {
    into["holderIdentity"] = spec.holder;
  }
  into["leaseDurationSeconds"] = spec.duration.count();
  into["leaseTransitions"] = spec.transitions;
  if (spec.acquired) into["acquireTime"] = format_micro_time(*spec.acquired);
  if (spec.renewed) into["renewTime"] = format_micro_time(*spec.renewed);
}

const resource_type& events_type() {
  static const resource_type type{{"", "v1", "Event"}, "events", true};
  return type;
}

std::optional<std::string> secret_data(const json::value& secret, std::string_view name) {
  const auto* const at = find(secret, {"data", name});
  if (at == nullptr || !at->is_string()) return std::nullopt;
  return base64_decode(at->get_string());
}

void set_secret_data(json::value& secret, std::string_view name, std::string_view bytes) {
  child(root(secret), "data")[name] = base64_encode(bytes);
}

}  // namespace rw::k8s
