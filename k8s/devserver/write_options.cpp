#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/protobuf.hpp"
#include "rw/k8s/devserver/write_plan.hpp"

#include <algorithm>
#include <charconv>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

problem unsupported_value(std::string_view options, std::string_view field, std::string_view value,
                          std::string_view supported) {
  return invalid({"meta.k8s.io", options, ""},
                 {{std::string(field), "FieldValueNotSupported",
                   "Unsupported value: \"" + std::string(value) +
                       "\": supported values: " + std::string(supported)}});
}

/// "All" is the only valid value.
outcome<void> check_dry_run(const std::vector<std::string_view>& given, std::string_view options) {
  if (std::ranges::all_of(given, [](std::string_view value) { return value == "All"; })) return {};
  std::string all;
  for (const auto value : given) {
    all += (all.empty() ? "\"" : ", \"") + std::string(value) + "\"";
  }
  return invalid({"meta.k8s.io", options, ""},
                 {{"dryRun", "FieldValueNotSupported",
                   "Unsupported value: []string{" + all + "}: supported values: \"All\""}});
}

/// Returns the fieldManager, or the client's name up to its first slash.
std::string manager_of(const call& from) {
  const auto named = from.parameters.get("fieldManager");
  if (!named.empty()) return std::string(named);
  const auto agent = std::string_view(from.user_agent);
  const auto name = agent.substr(0, std::min<std::size_t>(agent.find('/'), 128));
  return name.empty() ? "unknown" : std::string(name);
}

}  // namespace

outcome<write_options> write_options::parse(const call& from) {
  write_options result;
  const auto dry = from.parameters.all("dryRun");
  const auto good = check_dry_run(dry, "PatchOptions");
  if (good.has_error()) return good.error();
  result.dry_run = !dry.empty();
  result.force = from.parameters.flag("force");
  result.manager = manager_of(from);
  if (result.manager.size() > 128) {
    return invalid(
        {"meta.k8s.io", "PatchOptions", ""},
        {{"fieldManager", "FieldValueTooLong", "Too long: must have at most 128 bytes"}});
  }
  const auto validation = from.parameters.get("fieldValidation");
  if (validation == "Ignore") {
    result.unknown_fields = field_validation::ignore;
  } else if (validation == "Strict") {
    result.unknown_fields = field_validation::strict;
  } else if (!validation.empty() && validation != "Warn") {
    return unsupported_value("PatchOptions", "fieldValidation", validation,
                             "\"Ignore\", \"Warn\", \"Strict\"");
  }
  return result;
}

namespace {

outcome<json::value> parse_options(std::string_view body) {
  std::string reason;
  auto parsed = parse_json(body, reason);
  if (parsed && parsed->is_object()) return std::move(*parsed);
  return bad_request("couldn't get version/kind; json parse error: " + reason);
}

/// Returns the options of a request without a body.
outcome<json::value> options_in(const query& from) {
  json::object made;
  if (const auto grace = from.get("gracePeriodSeconds"); !grace.empty()) {
    std::int64_t seconds = 0;
    const auto read = std::from_chars(grace.data(), grace.data() + grace.size(), seconds);
    if (read.ec != std::errc() || read.ptr != grace.data() + grace.size()) {
      return bad_request("gracePeriodSeconds must be a number, not: " + std::string(grace));
    }
    made["gracePeriodSeconds"] = seconds;
  }
  if (from.has("orphanDependents")) made["orphanDependents"] = from.flag("orphanDependents");
  if (const auto policy = from.get("propagationPolicy"); !policy.empty()) {
    made["propagationPolicy"] = policy;
  }
  if (const auto dry = from.all("dryRun"); !dry.empty()) {
    made["dryRun"] = json::array(dry.begin(), dry.end());
  }
  return json::value(std::move(made));
}

}  // namespace

outcome<delete_options> delete_options::parse(const call& from, std::string_view body,
                                              bool is_protobuf) {
  const auto given = body.empty()  ? options_in(from.parameters)
                     : is_protobuf ? decode_protobuf(body)
                                   : parse_options(body);
  if (given.has_error()) return given.error();
  return parse(*given);
}

outcome<delete_options> delete_options::parse(const json::value& from) {
  delete_options result;
  for (const auto* field :
       {"gracePeriodSeconds", "preconditions", "orphanDependents", "propagationPolicy", "dryRun"}) {
    const auto* const value = find(from, {field});
    if (value != nullptr && !value->is_null()) result.given[field] = *value;
  }
  result.uid = find_string(from, {"preconditions", "uid"});
  result.resource_version = find_string(from, {"preconditions", "resourceVersion"});
  result.propagation = find_string(from, {"propagationPolicy"});
  result.grace_period = integer_at(from, {"gracePeriodSeconds"});
  const bool orphan = true_at(from, {"orphanDependents"});
  std::vector<std::string_view> dry;
  const auto* const runs = find(from, {"dryRun"});
  if (runs != nullptr && runs->is_array()) {
    for (const auto& run : runs->get_array()) {
      if (run.is_string()) dry.push_back(view(run.get_string()));
    }
  }
  const auto good = check_dry_run(dry, "DeleteOptions");
  if (good.has_error()) return good.error();
  result.dry_run = !dry.empty();
  const bool says_orphan = result.given.contains("orphanDependents");
  if (says_orphan && !result.propagation.empty()) {
    return invalid({"meta.k8s.io", "DeleteOptions", ""},
                   {{"propagationPolicy", "FieldValueInvalid",
                     "Invalid value: \"" + result.propagation +
                         "\": orphanDependents and deletionPropagation cannot be both set"}});
  }
  result.default_propagation = !says_orphan && result.propagation.empty();
  if (orphan && result.propagation.empty()) result.propagation = "Orphan";
  if (!result.propagation.empty() && result.propagation != "Foreground" &&
      result.propagation != "Background" && result.propagation != "Orphan") {
    return unsupported_value("DeleteOptions", "propagationPolicy", result.propagation,
                             "\"Background\", \"Foreground\", \"Orphan\"");
  }
  return result;
}

}  // namespace rw::k8s::devserver
