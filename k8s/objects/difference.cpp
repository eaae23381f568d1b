#include "rw/k8s/objects/difference.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace rw::k8s {
namespace {

namespace json = boost::json;

/// `mantissa` times ten to the power of `exponent`, without trailing zeros in the mantissa.
struct amount {
  bool negative = false;
  std::uint64_t mantissa = 0;
  int exponent = 0;

  friend bool operator==(const amount&, const amount&) = default;
};

bool multiply(std::uint64_t& value, std::uint64_t factor) {
  if (value > std::numeric_limits<std::uint64_t>::max() / factor) return false;
  value *= factor;
  return true;
}

bool take_digits(std::string_view& text, amount& into, bool fraction) {
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    if (!multiply(into.mantissa, 10)) return false;
    into.mantissa += static_cast<std::uint64_t>(text.front() - '0');
    if (fraction) --into.exponent;
    text.remove_prefix(1);
  }
  return true;
}

bool take_suffix(std::string_view text, amount& into) {
  if (text.empty()) return true;
  if (text.size() == 2 && text[1] == 'i') {
    const auto power = std::string_view("KMGTPE").find(text[0]);
    if (power == std::string_view::npos) return false;
    for (std::size_t i = 0; i <= power; ++i) {
      if (!multiply(into.mantissa, 1024)) return false;
    }
    return true;
  }
  if (text.size() == 1) {
    constexpr std::string_view letters = "numkMGTPE";
    constexpr std::array exponents = {-9, -6, -3, 3, 6, 9, 12, 15, 18};
    const auto at = letters.find(text[0]);
    if (at == std::string_view::npos) return false;
    into.exponent += exponents[at];
    return true;
  }
  if (text.front() != 'e' && text.front() != 'E') return false;
  text.remove_prefix(1);
  const bool negative = text.front() == '-';
  if (negative || text.front() == '+') text.remove_prefix(1);
  amount power;
  if (text.empty() || text.size() > 3 || !take_digits(text, power, false) || !text.empty()) {
    return false;
  }
  into.exponent += (negative ? -1 : 1) * static_cast<int>(power.mantissa);
  return true;
}

std::optional<amount> parse_quantity(std::string_view text) {
  amount out;
  out.negative = text.starts_with('-');
  if (out.negative || text.starts_with('+')) text.remove_prefix(1);
  const auto before = text.size();
  if (!take_digits(text, out, false)) return {};
  bool any = text.size() < before;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const auto digits = text.size();
    if (!take_digits(text, out, true)) return {};
    any = any || text.size() < digits;
  }
  if (!any || !take_suffix(text, out)) return {};
  if (out.mantissa == 0) return amount{};
  for (; out.mantissa % 10 == 0; out.mantissa /= 10) ++out.exponent;
  return out;
}

/// Returns a quantity, a string or a number in JSON, as text.
std::string text_of(const json::value& value) {
  if (value.is_string()) return std::string(value.as_string());
  if (value.is_int64()) return std::to_string(value.as_int64());
  if (value.is_uint64()) return std::to_string(value.as_uint64());
  return value.is_double() ? std::to_string(value.as_double()) : std::string();
}

/// Fields of the API whose lists are merged by keys (`listMapKey` of its types). A list whose
/// elements lack the keys is a different field of that name.
struct merged_list {
  std::string_view field;
  std::vector<std::string_view> keys;
};

const std::vector<merged_list>& merged_lists() {
  static const std::vector<merged_list> all = {
      {"containers", {"name"}},
      {"initContainers", {"name"}},
      {"env", {"name"}},
      {"volumes", {"name"}},
      {"imagePullSecrets", {"name"}},
      {"webhooks", {"name"}},
      {"volumeMounts", {"mountPath"}},
      {"hostAliases", {"ip"}},
      {"ports", {"containerPort", "protocol"}},
      {"ports", {"port", "protocol"}},
      {"topologySpreadConstraints", {"topologyKey", "whenUnsatisfiable"}},
      {"ownerReferences", {"uid"}},
  };
  return all;
}

bool is_atomic(std::string_view field) {
  constexpr std::array<std::string_view, 5> atomic = {"selector", "podSelector", "objectSelector",
                                                      "namespaceSelector", "nodeSelector"};
  return std::ranges::find(atomic, field) != atomic.end();
}

bool holds_quantities(std::string_view field) {
  return field == "requests" || field == "limits" || field == "hard" || field == "capacity";
}

/// Returns true for a value that Go omits when it writes a field.
bool is_empty(const json::value& value) {
  if (value.is_object()) return value.get_object().empty();
  if (value.is_array()) return value.get_array().empty();
  if (value.is_bool()) return !value.get_bool();
  if (value.is_number()) return value.to_number<double>() == 0;
  return value.is_null() || (value.is_string() && value.get_string().empty());
}

/// Fields whose default is true, so that absent differs from false.
bool is_true_by_default(std::string_view field) {
  return field == "automountServiceAccountToken" || field == "allowPrivilegeEscalation";
}

bool same_scalar(const json::value& a, const json::value& b) {
  if (a.is_double() || b.is_double()) {
    const bool numbers = a.is_number() && b.is_number();
    return numbers && a.to_number<double>() == b.to_number<double>();
  }
  return a == b;
}

json::value key_value(const json::value& entry, std::string_view key) {
  const auto* value = find(entry, {key});
  if (value != nullptr) return *value;
  return key == "protocol" ? json::value("TCP") : json::value();
}

bool same_keys(const json::value& a, const json::value& b,
               const std::vector<std::string_view>& keys) {
  return std::ranges::all_of(keys,
                             [&](auto key) { return key_value(a, key) == key_value(b, key); });
}

/// Returns true if keys are not unique, as with variables that are set twice.
bool has_twins(const json::array& list, const std::vector<std::string_view>& keys) {
  for (auto entry = list.begin(); entry != list.end(); ++entry) {
    const auto same = [&](const json::value& other) { return same_keys(*entry, other, keys); };
    if (std::any_of(entry + 1, list.end(), same)) return true;
  }
  return false;
}

class comparison {
 public:
  /// Returns false at the first difference, with its path in `where`.
  bool holds(const json::value& desired, const json::value* live, std::string_view field);

  std::string path;

 private:
  bool object(const json::object& desired, const json::object& live, std::string_view field);
  bool array(const json::array& desired, const json::array& live, std::string_view field);
  bool merged(const json::array& desired, const json::array& live,
              const std::vector<std::string_view>& keys);

  /// Compares at a path, and keeps the path in `where` if it differs.
  bool step(const std::string& name, const json::value& desired, const json::value* live,
            std::string_view field) {
    const auto before = path.size();
    path += name;
    if (!holds(desired, live, field)) return false;
    path.resize(before);
    return true;
  }
};

bool comparison::holds(const json::value& desired, const json::value* live,
                       std::string_view field) {
  if (desired.is_null()) return true;
  if (live == nullptr) return is_empty(desired) && !is_true_by_default(field);
  if (desired.is_object() && is_atomic(field)) return desired == *live;
  if (desired.is_object() && live->is_object()) {
    return object(desired.get_object(), live->get_object(), field);
  }
  if (desired.is_array() && live->is_array()) {
    return array(desired.get_array(), live->get_array(), field);
  }
  if (desired.kind() != live->kind() && is_empty(desired) && live->is_null()) return true;
  return same_scalar(desired, *live);
}

bool comparison::object(const json::object& desired, const json::object& live,
                        std::string_view field) {
  for (const auto& [name, value] : desired) {
    const auto* other = live.if_contains(name);
    const auto at = (path.empty() ? "" : ".") + std::string(name);
    if (holds_quantities(field) && other != nullptr &&
        same_quantity(text_of(value), text_of(*other))) {
      continue;
    }
    if (!step(at, value, other, name)) return false;
  }
  return true;
}

bool comparison::array(const json::array& desired, const json::array& live,
                       std::string_view field) {
  for (const auto& list : merged_lists()) {
    if (list.field != field) continue;
    const bool fits = std::ranges::all_of(desired, [&](const json::value& entry) {
      return find(entry, {list.keys.front()}) != nullptr;
    });
    if (fits && has_twins(desired, list.keys)) break;
    // Network policies have ports as well, which are not a map.
    const bool policy = list.keys.front() == "port" && path.find("gress[") != std::string::npos;
    if (fits && !policy) return merged(desired, live, list.keys);
  }
  if (desired.size() != live.size()) return false;
  for (std::size_t i = 0; i < desired.size(); ++i) {
    if (!step("[" + std::to_string(i) + "]", desired[i], &live[i], {})) return false;
  }
  return true;
}

bool comparison::merged(const json::array& desired, const json::array& live,
                        const std::vector<std::string_view>& keys) {
  for (const auto& entry : desired) {
    const auto found = std::ranges::find_if(
        live, [&](const json::value& other) { return same_keys(entry, other, keys); });
    const auto name = text_of(key_value(entry, keys.front()));
    if (!step("[" + name + "]", entry, found == live.end() ? nullptr : &*found, {})) return false;
  }
  return true;
}

/// Returns the object as the API server stores it.
json::value without_string_data(const json::value& desired) {
  auto out = desired;
  auto* const object = out.if_object();
  auto* const texts = object != nullptr ? object->if_contains("stringData") : nullptr;
  if (texts == nullptr || !texts->is_object()) return out;
  for (const auto& [name, text] : texts->get_object()) {
    if (!text.is_string()) continue;
    set_secret_data(out, name, text.get_string());
  }
  out.as_object().erase("stringData");
  return out;
}

}  // namespace

bool same_quantity(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const auto first = parse_quantity(a);
  return first && first == parse_quantity(b);
}

std::optional<std::string> find_difference(const json::value& desired, const json::value& live) {
  comparison compare;
  const bool secret = find(desired, {"stringData"}) != nullptr;
  const bool same = secret ? compare.holds(without_string_data(desired), &live, {})
                           : compare.holds(desired, &live, {});
  if (same) return {};
  return compare.path;
}

}  // namespace rw::k8s
