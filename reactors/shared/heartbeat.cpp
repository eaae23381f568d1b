#include "rw/reactors/shared/heartbeat.hpp"

#include "rw/core/json/json_view.hpp"
#include "rw/core/text.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/events.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace rw {
namespace {

namespace json = boost::json;
using core::json_view;

constexpr std::size_t heartbeat_depth = 4;
constexpr std::chrono::hours longest_age(240);
constexpr std::uint64_t longest_interval = 3600;
constexpr std::size_t digest_digits = 64;
constexpr std::size_t max_losses_bytes = max_heartbeat_bytes / 4;
constexpr std::size_t max_loss_bytes = 32;  // of one, besides its name

/// Numbers of `event_counts`, by their names on the wire.
struct named_count {
  std::string_view name;
  std::uint64_t event_counts::* value;
};
constexpr std::array<named_count, 7> event_count_names{
    {{"accepted", &event_counts::accepted},
     {"delivered", &event_counts::delivered},
     {"overflowed", &event_counts::overflowed},
     {"rejected", &event_counts::rejected},
     {"notPersisted", &event_counts::not_persisted},
     {"resyncs", &event_counts::resyncs},
     {"abandoned", &event_counts::abandoned}}};

constexpr std::array watch_states{watch_state::live, watch_state::catching_up,
                                  watch_state::unobserved};

constexpr std::size_t max_members = 64;  // of an object
static_assert(max_heartbeat_losses <= max_members);

/// Reads the members of one object; keeps the first error.
class heartbeat_reader {
 public:
  heartbeat_reader(json_view from, std::string path, std::string& error)
      : path_(std::move(path)), error_(error) {
    if (!from.is_object()) fail("", "an object");
    std::size_t members = 0;
    from.members([&](std::string_view name, json_view value) {
      if (++members > max_members) return;
      if (!value.is_null())
        members_.insert_or_assign(std::string(name), value);
      else
        members_.erase(std::string(name));
    });
    if (members > max_members) fail("", "an object of at most 64 members");
  }

  std::string text(std::string_view name) {
    const auto value = find(name);
    return value.exists() ? text_of(value, name) : std::string();
  }

  /// `name` is the member's, or that of the array that it is in.
  std::string text_of(json_view value, std::string_view name) {
    const auto found = value.string();
    const auto control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
    if (!value.is_string() || found.size() > max_name || std::ranges::any_of(found, control)) {
      fail(name, "a string of at most 253 bytes without control characters");
      return {};
    }
    return core::printable(found);
  }

  std::optional<std::chrono::system_clock::time_point> time(std::string_view name) {
    const auto written = text(name);
    auto read = k8s::parse_rfc3339(written);
    if (!read && !written.empty()) fail(name, "a time of RFC 3339");
    return read;
  }

  std::string digest(std::string_view name) {
    auto out = text(name);
    if (!out.empty() && out.size() != digest_digits) fail(name, "64 hexadecimal digits");
    return out;
  }

  std::uint64_t number(std::string_view name) {
    const auto value = find(name);
    const auto number = value.unsigned_integer();
    if (value.exists() && !number) fail(name, "a number from 0");
    return number.value_or(0);
  }

  /// By name.
  void for_each_name(const std::function<void(const std::string&)>& visit) const {
    for (const auto& [name, value] : members_) visit(name);
  }

  /// Null counts as absent.
  json_view find(std::string_view name) const {
    const auto found = members_.find(name);
    return found == members_.end() ? json_view() : found->second;
  }

  void fail(std::string_view name, std::string_view allowed) {
    if (!error_.empty()) return;
    error_ = path_ + (path_.empty() || name.empty() ? "" : ".") + std::string(name) + " must be " +
             std::string(allowed);
  }

 private:
  std::map<std::string, json_view, std::less<>> members_;  ///< the last of each name
  std::string path_;
  std::string& error_;
};

watch_report read_watch(heartbeat_reader from) {
  watch_report out{from.text("manager"), from.text("group"), from.text("resource"),
                   from.text("field")};
  out.reason = from.text("reason");
  out.live_since = from.time("liveSince");
  const auto name = from.text("state");
  const auto state =
      std::ranges::find(watch_states, name, [](watch_state s) { return to_string(s); });
  if (state == watch_states.end()) from.fail("state", "live, catching-up or unobserved");
  if (state != watch_states.end()) out.state = *state;
  return out;
}

std::vector<operator_losses> read_losses(heartbeat_reader from) {
  std::vector<operator_losses> out;
  from.for_each_name([&](const std::string& manager) {
    if (!manager.empty() && !is_path_segment(manager)) {
      return from.fail("", "an object whose names are elements of a path");
    }
    out.push_back({manager, from.number(manager)});
  });
  return out;
}

constexpr std::uint64_t max_status = 999;

std::chrono::milliseconds milliseconds(std::uint64_t number) {
  constexpr auto most = std::chrono::milliseconds(longest_age).count();
  return std::chrono::milliseconds(std::min(number, static_cast<std::uint64_t>(most)));
}

refused_event read_refused(heartbeat_reader from) {
  const auto status = from.number("status");
  if (status > max_status) from.fail("status", "at most 999");
  return {.manager = from.text("manager"),
          .status = static_cast<unsigned>(std::min(status, max_status)),
          .group = from.text("group"),
          .kind = from.text("kind"),
          .ns = from.text("namespace"),
          .name = from.text("name"),
          .oldest_other = milliseconds(from.number("oldestOtherMilliseconds"))};
}

/// As readers take it.
std::string short_text(std::string_view from) {
  return core::printable(from.substr(0, max_name));
}

json::object value_of(const refused_event& from) {
  return {{"manager", short_text(from.manager)},
          {"status", from.status},
          {"group", short_text(from.group)},
          {"kind", short_text(from.kind)},
          {"namespace", short_text(from.ns)},
          {"name", short_text(from.name)},
          {"oldestOtherMilliseconds", from.oldest_other.count()}};
}

json::object value_of(const std::vector<operator_losses>& from) {
  json::object out;
  std::uint64_t others = 0;
  std::size_t bytes = 0;
  for (const auto& each : from) {
    bytes += each.manager.size() + max_loss_bytes;
    const bool fits = out.size() + 1 < max_heartbeat_losses && bytes <= max_losses_bytes;
    if (fits && is_path_segment(each.manager)) {
      out[each.manager] = each.count;
    } else {
      others += each.count;
    }
  }
  if (others > 0) out[""] = others;
  return out;
}

json::object value_of(const heartbeat& from, std::size_t watches) {
  json::object events;
  for (const auto& each : event_count_names) events[each.name] = from.events.*each.value;
  json::object out{{"version", from.version},
                   {"bootId", from.boot_id},
                   {"sequence", from.sequence},
                   {"intervalSeconds", from.interval.count()},
                   {"source", from.source},
                   {"events", std::move(events)},
                   {"oldestUndeliveredMilliseconds", from.oldest_undelivered.count()}};
  const auto add = [&](std::string_view name, const std::string& text) {
    if (!text.empty()) out[name] = text;
  };
  if (is_path_segment(from.oldest_manager)) out["oldestManager"] = from.oldest_manager;
  add("pod", from.pod);
  add("managersDigest", from.managers_digest);
  add("caDigest", from.ca_digest);
  add("certificateDigest", from.certificate_digest);
  if (from.started) out["startedAt"] = k8s::format_micro_time(*from.started);
  if (from.sent) out["sentAt"] = k8s::format_micro_time(*from.sent);
  if (!from.losses.empty()) out["losses"] = value_of(from.losses);
  if (from.refused) out["refused"] = value_of(*from.refused);
  if (from.delivery) out["deliveryMilliseconds"] = from.delivery->count();
  if (from.certificate_not_after) {
    out["certificateNotAfter"] = k8s::format_time(*from.certificate_not_after);
  }
  if (!from.probes.empty()) {
    const auto most = std::min(from.probes.size(), max_heartbeat_probes);
    out["probes"] = json::array(from.probes.begin(), from.probes.begin() + most);
  }
  auto& list = out["watches"].emplace_array();
  for (std::size_t i = 0; i < watches; ++i) {
    const auto& each = from.watches[i];
    auto& entry = list.emplace_back(json::object{{"manager", each.manager},
                                                 {"group", each.group},
                                                 {"resource", each.resource},
                                                 {"field", each.field},
                                                 {"state", to_string(each.state)}});
    if (each.live_since) entry.as_object()["liveSince"] = k8s::format_micro_time(*each.live_since);
    if (!each.reason.empty()) entry.as_object()["reason"] = short_text(each.reason);
  }
  const auto more = from.more_watches + from.watches.size() - watches;
  if (more > 0) out["moreWatches"] = more;
  return out;
}

}  // namespace

void event_counts::add_increase(const event_counts& before, const event_counts& now) noexcept {
  for (const auto& each : event_count_names) {
    const auto from = before.*each.value;
    const auto to = now.*each.value;
    if (to > from) this->*each.value += to - from;
  }
}

std::string_view to_string(watch_state state) noexcept {
  switch (state) {
    case watch_state::live:
      return "live";
    case watch_state::catching_up:
      return "catching-up";
    case watch_state::unobserved:
      return "unobserved";
  }
  return "unobserved";
}

std::optional<std::chrono::milliseconds> parse_event_age(std::string_view text) noexcept {
  std::int64_t number = -1;
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number < 0) return {};
  const std::chrono::milliseconds age(number);
  return age > longest_age ? std::nullopt : std::optional(age);
}

std::string render_heartbeat(const heartbeat& from) {
  auto watches = std::min(from.watches.size(), max_heartbeat_watches);
  auto body = json::serialize(value_of(from, watches));
  while (body.size() > max_heartbeat_bytes && watches > 0) {
    watches /= 2;
    body = json::serialize(value_of(from, watches));
  }
  return body;
}

boost::system::result<heartbeat, core::text_error> parse_heartbeat(std::string_view body) {
  const core::json_document document(body, heartbeat_depth);
  if (document.flaw() != core::json_flaw::none) {
    return core::text_error{"it " + std::string(core::reason(document.flaw()))};
  }
  std::string error;
  heartbeat_reader root(document.root(), "", error);
  heartbeat out;
  out.boot_id = root.text("bootId");
  if (out.boot_id.empty()) root.fail("bootId", "a text");
  out.sequence = root.number("sequence");
  out.version = root.text("version");
  const auto interval = root.number("intervalSeconds");
  if (interval == 0 || interval > longest_interval) root.fail("intervalSeconds", "from 1 to 3600");
  out.interval = std::chrono::seconds(std::min(interval, longest_interval));
  out.source = root.text("source");
  out.oldest_undelivered = milliseconds(root.number("oldestUndeliveredMilliseconds"));
  out.oldest_manager = root.text("oldestManager");
  if (!out.oldest_manager.empty() && !is_path_segment(out.oldest_manager)) {
    root.fail("oldestManager", "an element of a path");
  }
  if (root.find("deliveryMilliseconds").exists()) {
    out.delivery = milliseconds(root.number("deliveryMilliseconds"));
  }
  out.certificate_not_after = root.time("certificateNotAfter");
  out.pod = root.text("pod");
  out.started = root.time("startedAt");
  out.sent = root.time("sentAt");
  out.managers_digest = root.digest("managersDigest");
  out.ca_digest = root.digest("caDigest");
  out.certificate_digest = root.digest("certificateDigest");
  if (const auto events = root.find("events"); events.exists()) {
    heartbeat_reader from(events, "events", error);
    for (const auto& each : event_count_names) out.events.*each.value = from.number(each.name);
  }
  if (const auto refused = root.find("refused"); refused.exists()) {
    out.refused = read_refused(heartbeat_reader(refused, "refused", error));
  }
  if (const auto losses = root.find("losses"); losses.exists()) {
    out.losses = read_losses(heartbeat_reader(losses, "losses", error));
  }
  if (const auto probes = root.find("probes"); probes.exists()) {
    if (!probes.is_array() || probes.size() > max_heartbeat_probes) {
      return core::text_error{"probes must be an array of at most 4 strings"};
    }
    probes.elements([&](json_view each) { out.probes.push_back(root.text_of(each, "probes")); });
  }
  out.more_watches = root.number("moreWatches");
  if (const auto watches = root.find("watches"); watches.exists()) {
    if (!watches.is_array() || watches.size() > max_heartbeat_watches) {
      return core::text_error{"watches must be an array of at most 64 objects"};
    }
    watches.elements([&](json_view each) {
      const auto path = "watches[" + std::to_string(out.watches.size()) + "]";
      out.watches.push_back(read_watch(heartbeat_reader(each, path, error)));
    });
  }
  if (!error.empty()) return core::text_error{std::move(error)};
  return out;
}

}  // namespace rw
