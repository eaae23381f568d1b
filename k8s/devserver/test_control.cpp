#include "rw/k8s/devserver/test_control.hpp"

#include "rw/core/config.hpp"
#include "rw/k8s/devserver/call.hpp"
#include "rw/k8s/devserver/refusals.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::size_t most_rules = 100;

/// A fault for the requests of some verbs below a path, as often as told.
struct fault_rule {
  std::vector<std::string> verbs;  ///< empty: all
  std::string path;                ///< prefix
  std::uint64_t times = std::numeric_limits<std::uint64_t>::max();
  fault injected;

  bool is_for(const std::string& verb, const std::string& at) const {
    return times > 0 && at.starts_with(path) &&
           (verbs.empty() || std::ranges::find(verbs, verb) != verbs.end());
  }
};

/// Reads one field of a rule; returns false if the field is unknown or its value invalid.
bool read_field(std::string_view name, const json::value& value, fault_rule& into) {
  const auto number = [&](std::uint64_t most) -> std::optional<std::uint64_t> {
    boost::system::error_code error;
    const auto read = value.to_number<std::uint64_t>(error);
    if (error || read > most) return {};
    return read;
  };
  const auto assign = [](auto& to, const auto& read) {
    if (read) to = static_cast<std::remove_reference_t<decltype(to)>>(*read);
    return read.has_value();
  };
  if (name == "verbs") {
    if (!value.is_array()) return false;
    for (const auto& verb : value.get_array()) {
      if (!verb.is_string()) return false;
      into.verbs.emplace_back(verb.get_string());
    }
    return true;
  }
  if (name == "path" && value.is_string()) {
    into.path = value.get_string();
    return into.path.starts_with('/');
  }
  if (name == "latency" && value.is_string()) {
    const auto read = core::parse_duration(value.get_string());
    if (read) into.injected.latency = *read;
    return read.has_value();
  }
  if (name == "times") return assign(into.times, number(1u << 30));
  if (name == "status")
    return assign(into.injected.status, number(599)) && into.injected.status >= 400;
  if (name == "retryAfter") return assign(into.injected.retry_after, number(1u << 30));
  if (name == "events") {
    const auto read = number(1u << 30);
    if (read) into.injected.events = static_cast<unsigned>(*read);
    return read.has_value();
  }
  bool* const flag = name == "disconnect" ? &into.injected.drop
                     : name == "goaway"   ? &into.injected.last
                     : name == "silent"   ? &into.injected.silent
                     : name == "torn"     ? &into.injected.torn
                     : name == "ends"     ? &into.injected.ends
                                          : nullptr;
  if (flag == nullptr || !value.is_bool()) return false;
  *flag = value.get_bool();
  return true;
}

outcome<std::vector<fault_rule>> read_rules(std::string_view body) {
  boost::system::error_code error;
  const auto read = json::parse(body, error);
  if (error || !read.is_array()) return bad_request("faults must be a JSON array of rules");
  if (read.get_array().size() > most_rules) return bad_request("more than 100 rules");
  std::vector<fault_rule> rules;
  for (const auto& entry : read.get_array()) {
    if (!entry.is_object()) return bad_request("a rule must be a JSON object");
    fault_rule rule;
    for (const auto& [name, value] : entry.get_object()) {
      if (read_field(name, value, rule)) continue;
      return bad_request("rule of faults: field \"" + std::string(name) +
                         "\" is unknown or has an invalid value");
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

/// The first rule that is for a request counts.
std::function<fault(const std::string&, const std::string&)> decide_by(
    std::vector<fault_rule> rules) {
  if (rules.empty()) return {};
  return [rules = std::move(rules)](const std::string& verb, const std::string& path) mutable {
    for (auto& rule : rules) {
      if (!rule.is_for(verb, path)) continue;
      --rule.times;
      return rule.injected;
    }
    return fault();
  };
}

}  // namespace

void test_control::handle(const std::shared_ptr<cluster>& in, const identity& by, const target& to,
                          const http::request& from, http::response& into) {
  if (!by.in("system:masters")) {
    return answer(into, forbidden({"", "", ""}, "User \"" + by.user + "\" cannot access path \"" +
                                                    to.path + "\""));
  }
  const auto operation = to.parts.size() == 2 ? std::string_view(to.parts[1]) : std::string_view();
  const bool post = from.method == "POST";
  if (operation == "faults" && from.method == "PUT") {
    auto rules = read_rules(from.body);
    if (rules.has_error()) return answer(into, rules.error());
    in->faults.decide = decide_by(std::move(*rules));
  } else if (operation == "faults" && from.method == "DELETE") {
    in->faults.decide = {};
  } else if (operation == "compact" && post) {
    in->objects.compact();
  } else if (operation == "backup" && post) {
    std::erase_if(backups_, [](const auto& backup) { return backup.first.expired(); });
    backups_.insert_or_assign(in, in->back_up());
  } else if (operation == "restore" && post) {
    const auto at = backups_.find(in);
    if (at == backups_.end()) return answer(into, bad_request("there is no backup"));
    in->restore(at->second, to.parameters.flag("reuseVersions"));
  } else if (operation == "disconnect" && post) {
    return disconnect_();
  } else {
    return answer(into, no_such_resource());
  }
  answer(into, 200, {{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Success"}});
}

}  // namespace rw::k8s::devserver
