#include "rw/k8s/devserver/page.hpp"

#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/refusals.hpp"
#include "rw/k8s/objects/base64.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <charconv>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

problem list_options_invalid(std::string field, std::string message, std::string reason) {
  return invalid({"meta.k8s.io", "ListOptions", ""},
                 {{std::move(field), std::move(reason), std::move(message)}});
}

problem continue_expired(const continue_token& from) {
  auto result = expired(
      "The provided continue parameter is too old to display a consistent list result. You can "
      "start a new list without the continue parameter, or use the continue token in this response "
      "to retrieve the remainder of the results. Continuing with the provided token results in an "
      "inconsistent list - objects that were created, modified, or deleted between the time the "
      "first chunk was returned and now may show up in the list.");
  result.continue_token = continue_token{0, from.from}.text();
  return result;
}

/// The query's parameters other than the selection.
struct wanted {
  std::uint64_t version = 0;
  bool exact = false;
  std::size_t limit = 0;
  std::string from = {};
  bool continued = false;
};

outcome<wanted> parse(const query& parameters) {
  wanted result;
  const auto limit = parameters.get("limit");
  std::int64_t number = 0;
  if (!limit.empty()) {
    const auto end = std::from_chars(limit.data(), limit.data() + limit.size(), number);
    if (end.ec != std::errc() || end.ptr != limit.data() + limit.size()) {
      return bad_request("strconv.ParseInt: parsing \"" + std::string(limit) +
                         "\": invalid syntax");
    }
    result.limit = static_cast<std::size_t>(std::max<std::int64_t>(number, 0));
  }
  const auto text = parameters.get("resourceVersion");
  const auto match = parameters.get("resourceVersionMatch");
  const auto token = parameters.get("continue");
  if (!match.empty()) {
    if (!token.empty()) {
      return list_options_invalid("resourceVersionMatch",
                                  "Forbidden: resourceVersionMatch is forbidden when continue is "
                                  "provided",
                                  "FieldValueForbidden");
    }
    if (text.empty()) {
      return list_options_invalid("resourceVersionMatch",
                                  "Forbidden: resourceVersionMatch is forbidden unless "
                                  "resourceVersion is provided",
                                  "FieldValueForbidden");
    }
    if (match != "Exact" && match != "NotOlderThan") {
      return list_options_invalid("resourceVersionMatch",
                                  "Unsupported value: \"" + std::string(match) +
                                      "\": supported values: \"Exact\", \"NotOlderThan\"",
                                  "FieldValueNotSupported");
    }
    if (match == "Exact" && text == "0") {
      return list_options_invalid("resourceVersionMatch",
                                  "Forbidden: resourceVersionMatch \"exact\" is forbidden for "
                                  "resourceVersion \"0\"",
                                  "FieldValueForbidden");
    }
  }
  const auto version = parse_version(text);
  if (version.has_error()) return version.error();
  result.version = *version;
  // Without a match, a limit makes a version exact (Kubernetes API concepts, table of semantics).
  result.exact = match == "Exact" || (match.empty() && result.limit > 0 && *version > 0);
  if (token.empty()) return result;
  if (*version > 0) {
    return bad_request("specifying resource version is not allowed when using continue");
  }
  auto from = continue_token::parse(token);
  if (from.has_error()) return from.error();
  result.version = from->version;
  result.exact = from->version > 0;
  result.from = std::move(from->from);
  result.continued = true;
  return result;
}

outcome<std::vector<record_ptr>> snapshot(const storage& in, const collection& collection,
                                          const selection& selection, const wanted& options) {
  if (options.version > in.version()) return too_large_version(options.version, in.version());
  std::vector<record_ptr> all;
  if (!options.exact || options.version == in.version()) {
    // One key is read by its path, as a registry does (apiserver's Store.ListPredicate).
    const auto name = selection.name();
    if (name.empty() || selection.ns().empty()) return collection.all(selection.ns());
    if (auto found = collection.find(storage_path(selection.ns(), name)))
      all.push_back(std::move(found));
    return all;
  }
  if (collection.all_at(options.version, selection.ns(), all)) return all;
  if (options.continued) return continue_expired({options.version, options.from});
  return expired("The resourceVersion for the provided list is too old.");
}

}  // namespace

std::string continue_token::text() const {
  return base64_encode(
      json::serialize(json::value{{"v", "meta.k8s.io/v1"}, {"rv", version}, {"start", from}}));
}

outcome<continue_token> continue_token::parse(std::string_view text) {
  const auto bad = [] { return bad_request("continue key is not valid"); };
  const auto plain = base64_decode(text);
  if (!plain) return bad();
  std::string reason;
  const auto value = parse_json(*plain, reason);
  if (!value) return bad();
  const auto version = integer_at(*value, {"rv"});
  const auto from = find_string(*value, {"start"});
  if (!version || *version < 0 || from.empty()) return bad();
  return continue_token{static_cast<std::uint64_t>(*version), std::string(from)};
}

outcome<std::uint64_t> parse_version(std::string_view text) {
  using parsed = outcome<std::uint64_t>;
  std::uint64_t version = 0;
  if (text.empty()) return parsed(boost::system::in_place_value, version);
  const auto end = std::from_chars(text.data(), text.data() + text.size(), version);
  if (end.ec == std::errc() && end.ptr == text.data() + text.size()) {
    return parsed(boost::system::in_place_value, version);
  }
  // No error of the API's own (apiserver, storage/api_object_versioner.go).
  return problem{.code = 500,
                 .reason = "",
                 .message = "resourceVersion: Invalid value: \"" + std::string(text) +
                            "\": strconv.ParseUint: parsing \"" + std::string(text) +
                            "\": invalid syntax"};
}

outcome<page> list_page(const storage& in, const collection& collection, const selection& selection,
                        const query& parameters) {
  const auto options = parse(parameters);
  if (options.has_error()) return options.error();
  auto all = snapshot(in, collection, selection, *options);
  if (all.has_error()) return all.error();
  page result;
  result.version = options->exact ? options->version : in.version();
  auto at = std::lower_bound(
      all->begin(), all->end(), options->from,
      [](const record_ptr& record, const std::string& path) { return record->path() < path; });
  for (; at != all->end(); ++at) {
    if (options->limit > 0 && result.items.size() == options->limit) break;
    if (selection.matches(**at)) result.items.push_back(std::move(*at));
  }
  if (at == all->end()) return result;
  result.continue_token = continue_token{result.version, (*at)->path()}.text();
  if (!selection.selective()) result.remaining = static_cast<std::uint64_t>(all->end() - at);
  return result;
}

}  // namespace rw::k8s::devserver
