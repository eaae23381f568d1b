#include "rw/reactors/shared/watcher.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/qualified_name.hpp"
#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/heartbeat.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <utility>

namespace rw {
namespace {

namespace json = boost::json;
using path = std::initializer_list<std::string_view>;
using name_rule = std::vector<std::string> (*)(std::string_view);

constexpr std::string_view label_rule =
    "at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit";
constexpr std::string_view dns_label_rule =
    "1 to 63 lower case letters, digits and '-', beginning and ending with a letter or digit";

/// Returns the errors of "kymas", "*", "deployments/scale" or "*/scale".
std::vector<std::string> resource_errors(std::string_view name) {
  const auto slash = std::min(name.find('/'), name.size());
  const auto plural = name.substr(0, slash);
  auto errors = plural == "*" ? std::vector<std::string>() : k8s::dns_label_errors(plural);
  if (slash == name.size()) return errors;
  for (auto& error : k8s::dns_label_errors(name.substr(slash + 1)))
    errors.push_back(std::move(error));
  return errors;
}

std::string dotted(path names) {
  std::string text;
  for (const auto name : names) text.append(text.empty() ? "" : ".").append(name);
  return text;
}

/// Returns the value as JSON, shortened for readability.
std::string shown(const json::value& value) {
  constexpr std::size_t most = 80;
  auto text = json::serialize(value);
  if (text.size() <= most) return text;
  return std::string(core::first_bytes(text, most)) + "...";
}

/// Reads field after field, and adds a sentence for each error.
class watcher_reader {
 public:
  explicit watcher_reader(const json::value& object) : object_(object) {}

  boost::system::result<watcher, core::text_error> read() {
    into_.key = k8s::key_of(object_);
    into_.uid = k8s::uid_of(object_);
    into_.generation = k8s::generation_of(object_);
    into_.created = k8s::created_at(object_).value_or(into_.created);
    read_name();
    read_resource();
    read_labels();
    read_field();
    read_manager();
    read_receiver();
    read_gateways();
    check_together();
    if (!error_.message.empty()) return core::text_error{core::printable(error_.message)};
    return std::move(into_);
  }

 private:
  void wrong(std::string_view sentence) {
    error_.message.append(error_.message.empty() ? "" : "; ").append(sentence);
  }
  void wrong(std::string_view field, const json::value& value, std::string_view allowed) {
    wrong(std::string(field) + " is " + shown(value) + ", but must be " + std::string(allowed));
  }
  void missing(path field, std::string_view allowed) {
    wrong(dotted(field) + " is missing: it must be " + std::string(allowed));
  }

  /// Returns the value at `field`; null, with a sentence, if there is none.
  const json::value* required(path field, std::string_view allowed) {
    const auto* const at = k8s::find(object_, field);
    if (at != nullptr && !at->is_null()) return at;
    missing(field, allowed);
    return nullptr;
  }

  /// Returns a string that obeys a rule; `allowed` describes the rule.
  std::string text(path field, std::string_view allowed, name_rule errors) {
    const auto* const at = required(field, allowed);
    if (at == nullptr) return {};
    if (at->is_string() && errors(at->get_string()).empty()) return std::string(at->get_string());
    wrong(dotted(field), *at, allowed);
    return {};
  }

  /// A webhook's name is a DNS subdomain; one invalid name makes the API server reject the whole
  /// configuration.
  void read_name() {
    const auto webhook = webhook_name(into_.key);
    if (webhook.size() <= 253) return;
    wrong("the Watcher's name is too long: its webhook's, " + shown(json::value(webhook)) +
          ", may have at most 253 characters");
  }

  void read_resource() {
    into_.watched.group = text(
        {"spec", "resourceToWatch", "group"},
        "an API group such as operator.kyma-project.io, empty for the core group, or * for all",
        [](std::string_view group) {
          const bool special = group.empty() || group == "*";
          return special ? std::vector<std::string>{} : k8s::dns_subdomain_errors(group);
        });
    into_.watched.version =
        text({"spec", "resourceToWatch", "version"}, "an API version such as v1, or * for all",
             [](std::string_view version) {
               return version == "*" ? std::vector<std::string>{} : k8s::dns_label_errors(version);
             });
    const auto resource = text(
        {"spec", "resourceToWatch", "resource"},
        "the plural name of a resource in lower case such as kymas, or * for all, maybe with a "
        "subresource such as deployments/scale",
        resource_errors);
    const auto slash = std::min(resource.find('/'), resource.size());
    into_.watched.plural = resource.substr(0, slash);
    into_.watched.subresource = resource.substr(std::min(slash + 1, resource.size()));
  }

  /// Checks rules on several fields. A webhook for leases, events or access reviews would delay
  /// each of them by its timeout while its server is down.
  void check_together() {
    auto& watched = into_.watched;
    if (watched.subresource == "status") {
      if (into_.field != watched_field::status) {
        wrong(
            "spec.resourceToWatch.resource names the subresource status, so spec.field must be "
            "status");
      }
      watched.subresource.clear();
    } else if (!watched.subresource.empty() && into_.field == watched_field::status) {
      wrong("spec.field is status, but spec.resourceToWatch.resource names the subresource " +
            watched.subresource);
    }
    check_labels();
    if (watched.plural != "*") return;
    static constexpr std::array never{"coordination.k8s.io", "events.k8s.io",
                                      "authorization.k8s.io", "authentication.k8s.io"};
    if (watched.group == "*" || std::ranges::find(never, watched.group) != never.end()) {
      wrong("spec.resourceToWatch.resource must not be \"*\" in the group " + watched.group +
            ": leases, events and access reviews must not depend on a webhook");
    }
  }

  void check_labels() {
    const auto& watched = into_.watched;
    if ((watched.plural != "*" && watched.group != "*") || !into_.labels.empty()) return;
    wrong("spec.resourceToWatch." + std::string(watched.plural == "*" ? "resource" : "group") +
          " is \"*\", which needs spec.labelsToWatch: otherwise the webhook would be called for "
          "each write");
  }

  void read_labels() {
    const auto* const at = k8s::find(object_, {"spec", "labelsToWatch"});
    if (at == nullptr || at->is_null()) return;
    if (!at->is_object()) {
      wrong("spec.labelsToWatch", *at, "labels: names with their values");
      return;
    }
    for (const auto& [name, value] : at->get_object()) read_label(name, value);
  }

  void read_label(std::string_view name, const json::value& value) {
    const auto field = "spec.labelsToWatch[" + shown(json::value(name)) + "]";
    if (const auto errors = k8s::label_key_errors(name); !errors.empty()) {
      wrong(field + " is no label: its " + errors.front());
    } else if (!value.is_string() || !k8s::label_value_errors(value.get_string()).empty()) {
      wrong(field, value, label_rule);
    } else {
      into_.labels.emplace(name, value.get_string());
    }
  }

  void read_field() {
    const auto* const at = required({"spec", "field"}, "spec or status");
    if (at == nullptr) return;
    if (*at == "status") {
      into_.field = watched_field::status;
    } else if (*at != "spec") {
      wrong("spec.field", *at, "spec or status");
    }
  }

  void read_manager() {
    const auto allowed = std::string(label_rule) + ", as it becomes part of URLs";
    const auto* at = k8s::find(object_, {"spec", "manager"});
    std::string field = "spec.manager";
    if (at == nullptr || at->is_null() || *at == "") {
      at = k8s::find(object_, {"metadata", "labels", managed_by_label});
      field = "the label " + std::string(managed_by_label);
    }
    if (at == nullptr || at->is_null() || *at == "") {
      wrong("spec.manager is missing, and so is " + field +
            ": one of them must name the operator that the events are for");
    } else if (!at->is_string() || !k8s::label_value_errors(at->get_string()).empty()) {
      wrong(field, *at, allowed);
    } else if (at->get_string() == heartbeat_component) {
      wrong(field, *at, "another name: heartbeats of the runtimes are sent to this one");
    } else {
      into_.manager = at->get_string();
    }
  }

  void read_receiver() {
    into_.receiver.name =
        text({"spec", "serviceInfo", "name"},
             "the name of a Service: " + std::string(dns_label_rule), k8s::dns_label_errors);
    read_port();
    into_.receiver.ns =
        text({"spec", "serviceInfo", "namespace"},
             "the name of a namespace: " + std::string(dns_label_rule), k8s::dns_label_errors);
  }

  void read_port() {
    constexpr std::int64_t most = std::numeric_limits<std::uint16_t>::max();
    constexpr std::string_view allowed = "a port between 1 and 65535";
    const auto* const at = required({"spec", "serviceInfo", "port"}, allowed);
    if (at == nullptr) return;
    if (at->is_int64() && at->get_int64() >= 1 && at->get_int64() <= most) {
      into_.receiver.port = static_cast<std::uint16_t>(at->get_int64());
    } else {
      wrong("spec.serviceInfo.port", *at, allowed);
    }
  }

  void read_gateways() {
    constexpr std::string_view allowed = "a label selector";
    const auto* const at = required({"spec", "gateway", "selector"}, allowed);
    if (at == nullptr) return;
    const auto before = error_.message.size();
    if (at->is_object()) {
      read_match_labels(k8s::find(*at, {"matchLabels"}));
      read_match_expressions(k8s::find(*at, {"matchExpressions"}));
    } else {
      wrong("spec.gateway.selector", *at, allowed);
    }
    if (error_.message.size() > before) return;
    auto selector = k8s::label_selector::from_json(*at);
    if (selector.has_error()) {
      wrong("spec.gateway.selector is no label selector: " + selector.error().message);
    } else {
      into_.gateways = std::move(*selector);
    }
  }

  // A selector reports its first error only, so this tries each of its parts alone.

  void read_match_labels(const json::value* labels) {
    if (labels == nullptr || !labels->is_object()) return;
    for (const auto& [name, value] : labels->get_object()) {
      try_selector("spec.gateway.selector.matchLabels[" + shown(json::value(name)) + "]",
                   json::object{{"matchLabels", json::object{{name, value}}}});
    }
  }

  void read_match_expressions(const json::value* expressions) {
    static constexpr std::array operators{"In", "NotIn", "Exists", "DoesNotExist"};
    if (expressions == nullptr || !expressions->is_array()) return;
    const auto& all = expressions->get_array();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto field = "spec.gateway.selector.matchExpressions[" + std::to_string(i) + "]";
      const auto* const operation = k8s::find(all[i], {"operator"});
      if (operation != nullptr &&
          std::ranges::none_of(operators, [&](auto known) { return *operation == known; })) {
        wrong(field + ".operator", *operation, "In, NotIn, Exists or DoesNotExist");
        continue;
      }
      try_selector(field, json::object{{"matchExpressions", json::array{all[i]}}});
    }
  }

  void try_selector(const std::string& field, const json::value& selector) {
    const auto made = k8s::label_selector::from_json(selector);
    if (made.has_error()) wrong(field + " can't be used: " + made.error().message);
  }

  const json::value& object_;
  watcher into_;
  core::text_error error_;
};

}  // namespace

std::string_view to_string(watched_field field) noexcept {
  return field == watched_field::spec ? "spec" : "status";
}

boost::system::result<watcher, core::text_error> read_watcher(const json::value& object) {
  return watcher_reader(object).read();
}

std::string webhook_name(const k8s::object_key& watcher) {
  return watcher.ns + "." + watcher.name + std::string(webhook_suffix);
}

std::string last_valid_text(const json::value& watcher) {
  json::object kept;
  if (const auto* const spec = k8s::find(watcher, {"spec"})) kept["spec"] = *spec;
  const auto manager = k8s::label(watcher, managed_by_label);
  if (!manager.empty()) kept["manager"] = manager;
  return json::serialize(kept);
}

std::optional<watcher> last_valid_watcher(const json::value& object,
                                          const json::value& virtual_service) {
  const auto owners = k8s::owners_of(virtual_service);
  const auto is_own = [&](const auto& owner) { return owner.uid == k8s::uid_of(object); };
  const auto text = k8s::annotation(virtual_service, last_valid_annotation);
  if (text.empty() || std::ranges::none_of(owners, is_own)) return std::nullopt;
  const auto kept = k8s::read_json(text);
  if (!kept || !kept->is_object()) return std::nullopt;
  auto before = object;
  const auto* const spec = kept->get_object().if_contains("spec");
  before.as_object()["spec"] = spec == nullptr ? json::value() : *spec;
  k8s::set_label(before, managed_by_label, k8s::find_string(*kept, {"manager"}));
  if (auto valid = read_watcher(before)) return std::move(*valid);
  return std::nullopt;
}

}  // namespace rw
