#include "rw/reactors/config_sync/target.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/content_digest.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/object.hpp>

namespace rw::config_sync {
namespace {

namespace json = boost::json;

constexpr auto since_ever = "ever";

}  // namespace

std::string digest_of(source kind, const k8s::object& now) {
  content_digest digest;
  digest.add(to_string(kind));
  if (!now) return digest.add(std::string_view("absent")).hex();
  const auto value = now.parse();
  const auto add = [&](std::string_view member) {
    const auto* const found = k8s::find(value, {member});
    const auto* const object = found == nullptr ? nullptr : found->if_object();
    const bool nothing = found == nullptr || (object != nullptr && object->empty());
    if (!nothing) digest.add(member).add(*found);
  };
  // Their order is part of the digest.
  for (const auto* member : {"data", "binaryData", "type", "spec"}) add(member);
  return digest.hex();
}

std::optional<target> read_record(const json::value& config_map) {
  const auto number =
      core::parse_number<std::uint64_t>(k8s::find_string(config_map, {"data", "number"}));
  const auto since = k8s::find_string(config_map, {"data", "since"});
  target out{{number.value_or(0), std::string(k8s::find_string(config_map, {"data", "digest"}))},
             {}};
  if (!number || out.of.digest.empty()) return std::nullopt;
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
      {"data", json::object{{"number", std::to_string(now.of.number)},
                            {"digest", now.of.digest},
                            {"since", now.since ? k8s::format_time(*now.since) : since_ever}}}};
}

target next_target(const target_input& in) {
  // Rounded up: the record has no fractions of a second, and must not antedate the change.
  const auto since = std::chrono::ceil<std::chrono::seconds>(in.now);
  const auto after = [&](const numbered_revision& last) {
    return target{{last.number + 1, in.digest}, since};
  };
  if (in.recorded) {
    const bool same = !in.changed && in.recorded->of.digest == in.digest;
    const bool signal_first = in.all_once && !in.recorded->since;
    return same && !signal_first ? *in.recorded : after(in.recorded->of);
  }
  if (in.changed || in.last_signalled) return after({.number = in.last_signalled.value_or(1)});
  return {{1, in.digest}, in.all_once ? std::optional(since) : std::nullopt};
}

}  // namespace rw::config_sync
