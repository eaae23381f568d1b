#include "k8s/manifests.hpp"

#include "k8s/types.hpp"
#include "k8s/yaml_stream.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/throw_exception.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

namespace rw::k8s {
namespace {

namespace json = boost::json;

constexpr unsigned deepest = 128;
constexpr std::string_view core_tags = "tag:yaml.org,2002:";

/// Something is wrong at a node; ends the reading of the text.
struct wrong : std::runtime_error {
  wrong(const yaml_node& at, const std::string& text) : std::runtime_error(text), line(at.line) {}
  const std::size_t line;
};

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, text) != words.end();
}

constexpr std::array<std::string_view, 11> trues = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                                    "True", "TRUE", "on",  "On",  "ON"};
constexpr std::array<std::string_view, 11> falses = {"n",     "N",     "no",  "No",  "NO", "false",
                                                     "False", "FALSE", "off", "Off", "OFF"};
constexpr std::array<std::string_view, 5> nulls = {"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 12> not_in_json = {".nan",  ".NaN",  ".NAN",  ".inf",
                                                          ".Inf",  ".INF",  "+.inf", "+.Inf",
                                                          "+.INF", "-.inf", "-.Inf", "-.INF"};

/// Go's strconv.ParseInt with base 0: the base stands in the prefix, a zero alone means octal.
std::optional<json::value> integer(std::string text) {
  std::erase(text, '_');
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  int base = 10;
  const auto prefix = rest.substr(0, 2);
  if (prefix == "0x" || prefix == "0X") base = 16;
  if (prefix == "0o" || prefix == "0O") base = 8;
  if (prefix == "0b" || prefix == "0B") base = 2;
  if (base != 10) {
    rest.remove_prefix(2);
  } else if (rest.size() > 1 && rest.front() == '0') {
    base = 8;
  }
  if (rest.empty() || rest.front() == '-') return {};
  const auto whole = (negative ? "-" : "") + std::string(rest);
  const auto* const end = whole.data() + whole.size();
  std::int64_t value = 0;
  auto read = std::from_chars(whole.data(), end, value, base);
  if (read.ec == std::errc() && read.ptr == end) return json::value(value);
  std::uint64_t large = 0;
  read = std::from_chars(whole.data(), end, large, base);
  if (read.ec == std::errc() && read.ptr == end) return json::value(large);
  return {};
}

std::optional<json::value> real(std::string_view text) {
  if (text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return {};
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || !std::isfinite(value)) return {};
  return json::value(value);
}

class reader {
 public:
  explicit reader(std::size_t values) : left_(values) {}

  json::value read(const yaml_node& node, unsigned depth = 0) {
    if (depth > deepest) throw wrong(node, "is nested too deeply");
    if (left_ == 0) throw wrong(node, "is too large once its aliases are followed");
    --left_;
    switch (node.what) {
      case yaml_node::kind::map:
        return map(node, depth);
      case yaml_node::kind::sequence: {
        json::array array;
        for (const auto* item : node.items) array.push_back(read(*item, depth + 1));
        return array;
      }
      case yaml_node::kind::scalar:
        return scalar(node);
      case yaml_node::kind::null:
        break;
    }
    return nullptr;
  }

 private:
  json::value map(const yaml_node& node, unsigned depth) {
    json::object object;
    std::vector<const yaml_node*> merged;
    for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
      const auto& field = *node.items[i];
      const auto& value = *node.items[i + 1];
      if (field.text == "<<" && field.tag == "?") {
        merged.push_back(&value);
        continue;
      }
      const auto name = key(field);
      if (object.contains(name)) throw wrong(field, "\"" + name + "\" is there twice");
      object.emplace(name, read(value, depth + 1));
    }
    for (const auto* one : merged) merge(*one, object, depth + 1);
    return object;
  }

  /// What is merged never replaces what stands there (yaml.org/type/merge.html).
  void merge(const yaml_node& from, json::object& into, unsigned depth) {
    if (from.what == yaml_node::kind::sequence) {
      for (const auto* one : from.items) {
        if (one->what != yaml_node::kind::map) throw wrong(from, "<< merges what is no mapping");
        merge(*one, into, depth + 1);
      }
      return;
    }
    if (from.what != yaml_node::kind::map) throw wrong(from, "<< merges what is no mapping");
    auto fields = read(from, depth);
    for (auto& field : fields.as_object()) into.emplace(field.key(), std::move(field.value()));
  }

  std::string key(const yaml_node& node) {
    if (node.what != yaml_node::kind::scalar) throw wrong(node, "a key is no string");
    const auto value = scalar(node);
    if (value.is_bool()) return value.as_bool() ? "true" : "false";
    if (value.is_null()) throw wrong(node, "a key is empty");
    return node.text;
  }

  static json::value scalar(const yaml_node& node) {
    const auto& text = node.text;
    const std::string_view tag = node.tag;
    // "!" is the tag of what was quoted, "?" of what was not.
    if (tag == "!") return json::string(text);
    if (tag.starts_with(core_tags)) return tagged(node, tag.substr(core_tags.size()));
    if (!tag.empty() && tag != "?") throw wrong(node, "the tag " + node.tag + " is not known");
    return plain(node);
  }

  static json::value plain(const yaml_node& node) {
    const auto& text = node.text;
    if (is_one_of(text, nulls)) return nullptr;
    if (is_one_of(text, trues)) return true;
    if (is_one_of(text, falses)) return false;
    if (is_one_of(text, not_in_json)) throw wrong(node, "JSON has no number " + text);
    if (std::string_view("+-.0123456789").find(text.front()) == std::string_view::npos) {
      return json::string(text);
    }
    if (auto value = integer(text)) return *value;
    if (auto value = real(text)) return *value;
    return json::string(text);
  }

  static json::value tagged(const yaml_node& node, std::string_view tag) {
    if (tag == "str") return json::string(node.text);
    auto value = plain(node);
    const bool fits = (tag == "int" && (value.is_int64() || value.is_uint64())) ||
                      (tag == "bool" && value.is_bool()) || (tag == "null" && value.is_null()) ||
                      (tag == "float" && value.is_number());
    if (!fits) throw wrong(node, "\"" + node.text + "\" is no " + std::string(tag));
    return value;
  }

  std::size_t left_;
};

void check(const json::value& object, const yaml_node& at) {
  if (!object.is_object()) throw wrong(at, "is no object");
  for (const auto* field : {"apiVersion", "kind"}) {
    if (find_string(object, {field}).empty()) {
      throw wrong(at, std::string(field) + " is missing or no string");
    }
  }
}

void check_name(const json::value& object, const yaml_node& at) {
  check(object, at);
  if (!find_string(object, {"metadata", "name"}).empty()) return;
  throw wrong(at, "metadata.name is missing or no string");
}

void add(json::value object, const yaml_node& at, std::vector<json::value>& into) {
  check(object, at);
  if (find_string(object, {"kind"}) != "List" || find_string(object, {"apiVersion"}) != "v1") {
    check_name(object, at);
    into.push_back(std::move(object));
    return;
  }
  auto* const items = object.as_object().if_contains("items");
  if (items == nullptr || !items->is_array()) throw wrong(at, "a List without items");
  for (auto& item : items->as_array()) {
    check_name(item, at);
    into.push_back(std::move(item));
  }
}

/// A kind, its rank in the order of application and, where every API server has it, its resource.
struct ranked {
  std::string_view group;
  std::string_view kind;
  int rank;
  std::string_view version = {};
  std::string_view plural = {};
  bool namespaced = true;
};
constexpr std::string_view rbac = "rbac.authorization.k8s.io";
constexpr int custom_rank = 80;
constexpr std::array ranks = {
    ranked{"", "Namespace", 0, "v1", "namespaces", false},
    ranked{"apiextensions.k8s.io", "CustomResourceDefinition", 10, "v1",
           "customresourcedefinitions", false},
    ranked{"scheduling.k8s.io", "PriorityClass", 20, "v1", "priorityclasses", false},
    ranked{"storage.k8s.io", "StorageClass", 20},
    ranked{"", "ResourceQuota", 20, "v1", "resourcequotas"},
    ranked{"", "LimitRange", 20, "v1", "limitranges"},
    ranked{"networking.k8s.io", "NetworkPolicy", 20, "v1", "networkpolicies"},
    ranked{"", "ServiceAccount", 30, "v1", "serviceaccounts"},
    ranked{"", "Secret", 35, "v1", "secrets"},
    ranked{"", "ConfigMap", 35, "v1", "configmaps"},
    ranked{"certificates.k8s.io", "ClusterTrustBundle", 35},
    ranked{"", "PersistentVolume", 35, "v1", "persistentvolumes", false},
    ranked{"", "PersistentVolumeClaim", 36, "v1", "persistentvolumeclaims"},
    ranked{rbac, "ClusterRole", 40, "v1", "clusterroles", false},
    ranked{rbac, "Role", 40, "v1", "roles"},
    ranked{rbac, "ClusterRoleBinding", 45, "v1", "clusterrolebindings", false},
    ranked{rbac, "RoleBinding", 45, "v1", "rolebindings"},
    ranked{"", "Service", 50, "v1", "services"},
    ranked{"apps", "DaemonSet", 60, "v1", "daemonsets"},
    ranked{"apps", "Deployment", 60, "v1", "deployments"},
    ranked{"apps", "StatefulSet", 60, "v1", "statefulsets"},
    ranked{"apps", "ReplicaSet", 60, "v1", "replicasets"},
    ranked{"batch", "Job", 60, "v1", "jobs"},
    ranked{"batch", "CronJob", 60},
    ranked{"", "Pod", 60, "v1", "pods"},
    ranked{"policy", "PodDisruptionBudget", 70},
    ranked{"autoscaling", "HorizontalPodAutoscaler", 70},
    ranked{"networking.k8s.io", "Ingress", 70, "v1", "ingresses"},
    ranked{"apiregistration.k8s.io", "APIService", 70},
    ranked{"admissionregistration.k8s.io", "MutatingWebhookConfiguration", 90, "v1",
           "mutatingwebhookconfigurations", false},
    ranked{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration", 90, "v1",
           "validatingwebhookconfigurations", false},
};

const ranked* find_kind(std::string_view api_version, std::string_view kind) noexcept {
  const auto slash = api_version.find('/');
  const auto group =
      slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
  const auto* const found = std::ranges::find_if(
      ranks, [&](const ranked& one) { return one.kind == kind && one.group == group; });
  return found == ranks.end() ? nullptr : found;
}

}  // namespace

std::string manifest_defect::message() const {
  std::string out;
  if (document > 0) out += "document " + std::to_string(document);
  if (line > 0) out += (out.empty() ? "line " : ", line ") + std::to_string(line);
  return out.empty() ? text : out + ": " + text;
}

void throw_exception_from_error(const manifest_defect& defect,
                                const boost::source_location& where) {
  boost::throw_exception(std::runtime_error(defect.message()), where);
}

manifest_result<std::vector<json::value>> parse_manifests(const std::string& text,
                                                          manifest_limits limits) {
  if (text.size() > limits.bytes) {
    return manifest_defect{.text = "is larger than " + std::to_string(limits.bytes) + " bytes"};
  }
  std::vector<json::value> out;
  std::size_t document = 0;
  try {
    const yaml_stream documents(text, limits.values);
    reader all(limits.values);
    for (const auto* one : documents.documents()) {
      ++document;
      if (one == nullptr) continue;
      auto value = all.read(*one);
      if (!value.is_null()) add(std::move(value), *one, out);
    }
  } catch (const wrong& e) {
    return manifest_defect{document, e.line, e.what()};
  } catch (const yaml_error& e) {
    return manifest_defect{e.document, e.line, e.what()};
  }
  return out;
}

int apply_rank(std::string_view api_version, std::string_view kind) noexcept {
  const auto* const known = find_kind(api_version, kind);
  return known != nullptr ? known->rank : custom_rank;
}

std::optional<resource_type> well_known_type(std::string_view api_version, std::string_view kind) {
  const auto* const known = find_kind(api_version, kind);
  if (known == nullptr || known->plural.empty()) return {};
  resource_type out{{{}, {}, std::string(kind)}, std::string(known->plural), known->namespaced};
  if (!parse_api_version(api_version, out.gvk) || out.gvk.version != known->version) return {};
  return out;
}

void sort_for_apply(std::vector<json::value>& objects) {
  std::vector<std::pair<int, std::size_t>> order;
  for (const auto& one : objects) {
    const auto rank = apply_rank(find_string(one, {"apiVersion"}), find_string(one, {"kind"}));
    order.emplace_back(rank, order.size());
  }
  std::ranges::sort(order);
  std::vector<json::value> sorted;
  for (const auto& [rank, at] : order) sorted.push_back(std::move(objects[at]));
  objects = std::move(sorted);
}

}  // namespace rw::k8s
