#include "reactors/config_sync/record.hpp"

#include "k8s/rfc3339.hpp"
#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>

#include <charconv>
#include <utility>

namespace rw::config_sync {
namespace {

namespace json = boost::json;
using time_point = std::chrono::system_clock::time_point;

constexpr auto number_key = "number";
constexpr auto digest_key = "digest";
constexpr auto since_key = "since";
constexpr auto since_ever = "ever";

/// As it is read again: the record has no fractions, and may not say that it was earlier.
time_point whole_seconds(time_point when) {
  return std::chrono::ceil<std::chrono::seconds>(when);
}

}  // namespace

std::optional<target> read_record(const json::value& config_map) {
  const auto number = k8s::find_string(config_map, {"data", number_key});
  const auto since = k8s::find_string(config_map, {"data", since_key});
  target out;
  out.of.digest = k8s::find_string(config_map, {"data", digest_key});
  const auto* const end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, out.of.number);
  if (error != std::errc() || stop != end || out.of.digest.empty()) return std::nullopt;
  if (since == since_ever) return out;
  out.since = k8s::parse_rfc3339(since);
  return out.since ? std::optional(out) : std::nullopt;
}

json::value write_record(const target& now, const json::value& before) {
  json::object metadata{{"name", record_name}, {"namespace", kcp_namespace}};
  const auto version = k8s::resource_version_of(before);
  if (!version.empty()) metadata["resourceVersion"] = version;
  return json::object{
      {"apiVersion", "v1"},
      {"kind", "ConfigMap"},
      {"metadata", std::move(metadata)},
      {"data", json::object{{number_key, std::to_string(now.of.number)},
                            {digest_key, now.of.digest},
                            {since_key, now.since ? k8s::format_time(*now.since) : since_ever}}}};
}

target next_target(const target& last, std::string digest, time_point now) {
  return {{last.of.number + 1, std::move(digest)}, whole_seconds(now)};
}

target recover_target(const std::vector<std::string>& texts, std::string digest, time_point now) {
  if (texts.empty()) return {{1, std::move(digest)}, std::nullopt};
  target last;
  for (const auto& text : texts) {
    const auto one = parse_signal(text);
    if (one && one->of.number >= last.of.number) last.of = one->of;
  }
  last.since = whole_seconds(now);
  if (last.of.digest == digest) return last;
  return next_target(last, std::move(digest), now);
}

}  // namespace rw::config_sync
