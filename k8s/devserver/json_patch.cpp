#include "rw/k8s/devserver/patch.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::size_t most_operations = 10'000;
constexpr std::size_t most_copied = 3u << 20;  // bytes, estimated
constexpr std::size_t deepest_patched = 512;  // twice the depth that the parser of requests accepts

std::size_t text_size(const json::value& value) {
  std::size_t sum = 0;
  if (value.is_string()) return value.get_string().size() + 2;
  if (value.is_array()) {
    for (const auto& entry : value.get_array()) sum += 1 + text_size(entry);
    return sum + 2;
  }
  if (value.is_object()) {
    for (const auto& [name, member] : value.get_object())
      sum += 4 + name.size() + text_size(member);
    return sum + 2;
  }
  return 8;
}

std::size_t depth(const json::value& value) {
  std::size_t most = 0;
  if (value.is_array()) {
    for (const auto& entry : value.get_array()) most = std::max(most, depth(entry));
    return most + 1;
  }
  if (value.is_object()) {
    for (const auto& [name, member] : value.get_object()) most = std::max(most, depth(member));
    return most + 1;
  }
  return 0;
}

/// A JSON pointer (RFC 6901).
struct pointer {
  std::vector<std::string> names;

  static std::optional<pointer> parse(std::string_view text) {
    pointer made;
    if (!text.empty() && text.front() != '/') return std::nullopt;
    while (!text.empty()) {
      text.remove_prefix(1);
      const auto end = std::min(text.find('/'), text.size());
      made.names.push_back(unescaped(text.substr(0, end)));
      text.remove_prefix(end);
    }
    return made;
  }

 private:
  static std::string unescaped(std::string_view name) {
    std::string out;
    for (std::size_t i = 0; i < name.size(); ++i) {
      const auto two = name.substr(i, 2);
      const bool escape = two == "~0" || two == "~1";
      out += escape ? (two[1] == '0' ? '~' : '/') : name[i];
      i += escape ? 1 : 0;
    }
    return out;
  }
};

/// Returns the index in a list of `size` items that `name` denotes.
std::optional<std::size_t> index_in(std::size_t size, std::string_view name) {
  std::int64_t index = 0;
  const auto* const last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data(), last, index);
  if (error != std::errc() || end != last) return std::nullopt;
  if (index < 0) index += static_cast<std::int64_t>(size);
  if (index < 0 || index >= static_cast<std::int64_t>(size)) return std::nullopt;
  return static_cast<std::size_t>(index);
}

json::value* child(json::value& of, std::string_view name) {
  if (of.is_object()) return of.get_object().if_contains(name);
  if (!of.is_array()) return nullptr;
  auto& list = of.get_array();
  const auto index = index_in(list.size(), name);
  return index ? &list[*index] : nullptr;
}

/// Applies one operation after the other; each returns its error.
class patcher {
 public:
  explicit patcher(json::value& target) : root_(target), depth_(depth(target)) {}

  bool apply(const json::object& operation) {
    const auto* const kind = text(operation, "op");
    const auto* const path = text(operation, "path");
    if (kind == nullptr || path == nullptr) return false;
    const auto to = pointer::parse(*path);
    if (!to) return false;
    const auto* const given = operation.if_contains("value");
    static const json::value null;
    const auto& value = given != nullptr ? *given : null;
    if (*kind == "add") return add(*to, value);
    if (*kind == "remove") return remove(*to, nullptr);
    if (*kind == "replace") return replace(*to, value);
    if (*kind == "test") return test(*to, value);
    if (*kind != "move" && *kind != "copy") return false;
    const auto* const source_path = text(operation, "from");
    const auto from = source_path != nullptr ? pointer::parse(*source_path) : std::nullopt;
    if (!from) return false;
    return *kind == "move" ? move(*from, *to) : copy(*from, *to);
  }

 private:
  static const json::string* text(const json::object& operation, std::string_view name) {
    const auto* const value = operation.if_contains(name);
    return value != nullptr ? value->if_string() : nullptr;
  }

  /// Returns the value at the first `count` names of a path; null if there is none.
  json::value* find(const pointer& path, std::size_t count) {
    auto* at = &root_;
    for (std::size_t i = 0; i < count && at != nullptr; ++i) at = child(*at, path.names[i]);
    return at;
  }
  json::value* find(const pointer& path) { return find(path, path.names.size()); }
  json::value* parent(const pointer& path) { return find(path, path.names.size() - 1); }

  /// Called before a value of depth `added` is inserted at `path`. `depth_` is never too small; it
  /// is computed again only when it seems too large.
  bool fits(const pointer& path, std::size_t added) {
    const auto together = path.names.size() + added;
    if (together > deepest_patched) return false;
    depth_ = std::max(depth_, together);
    if (depth_ > deepest_patched) depth_ = std::max(depth(root_), together);
    return depth_ <= deepest_patched;
  }

  bool add(const pointer& to, json::value value) {
    return fits(to, depth(value)) && put(to, std::move(value));
  }

  bool put(const pointer& to, json::value value) {
    if (to.names.empty()) {
      root_ = std::move(value);
      return true;
    }
    auto* const into = parent(to);
    if (into == nullptr) return false;
    const auto& name = to.names.back();
    if (into->is_object()) {
      into->get_object()[name] = std::move(value);
      return true;
    }
    if (!into->is_array()) return false;
    auto& list = into->get_array();
    // One position more than there are items: after the last.
    const auto index = name == "-" ? list.size() : index_in(list.size() + 1, name);
    if (!index) return false;
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(*index), std::move(value));
    return true;
  }

  bool remove(const pointer& from, json::value* keep) {
    auto* const value = from.names.empty() ? nullptr : find(from);
    if (value == nullptr) return false;
    if (keep != nullptr) *keep = std::move(*value);
    auto* const of = parent(from);
    const auto& name = from.names.back();
    if (of->is_object()) {
      of->get_object().stable_erase(name);
    } else {
      auto& list = of->get_array();
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(*index_in(list.size(), name)));
    }
    return true;
  }

  bool replace(const pointer& to, const json::value& value) {
    auto* const old = find(to);
    if (old == nullptr || !fits(to, depth(value))) return false;
    *old = value;
    return true;
  }

  bool test(const pointer& at, const json::value& value) {
    const auto* const found = find(at);
    if (found != nullptr) return *found == value;
    return value.is_null() && !at.names.empty() && parent(at) != nullptr && parent(at)->is_object();
  }

  bool move(const pointer& from, const pointer& to) {
    json::value value;
    if (!remove(from, &value)) return false;
    // A moved value is at most as deep as the whole was.
    const auto most = depth_ - std::min(depth_, from.names.size());
    return (fits(to, most) || fits(to, depth(value))) && put(to, std::move(value));
  }

  bool copy(const pointer& from, const pointer& to) {
    const auto* const found = find(from);
    if (found == nullptr) return false;
    copied_ += text_size(*found);
    if (copied_ > most_copied) return false;
    return add(to, *found);
  }

  json::value& root_;
  std::size_t depth_;
  std::size_t copied_ = 0;
};

problem no_patch(std::string_view kind, std::string_view wanted) {
  return {.code = 400,
          .reason = "BadRequest",
          .message = "json: cannot unmarshal " + std::string(kind) + " into Go value of type " +
                     std::string(wanted)};
}

std::string_view kind_of(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "bool";
    case json::kind::string:
      return "string";
    case json::kind::array:
      return "array";
    case json::kind::object:
      return "object";
    default:
      return "number";
  }
}

}  // namespace

outcome<void> json_patch(json::value& target, const json::value& operations) {
  if (operations.is_null()) return {};
  if (!operations.is_array()) return no_patch(kind_of(operations), "jsonpatch.Patch");
  const auto& all = operations.get_array();
  for (const auto& operation : all) {
    if (!operation.is_object()) return no_patch(kind_of(operation), "jsonpatch.Operation");
  }
  if (all.size() > most_operations) {
    return problem{.code = 413,
                   .reason = "RequestEntityTooLarge",
                   .message =
                       "Request entity too large: The allowed maximum operations in a JSON "
                       "patch is " +
                       std::to_string(most_operations) + ", got " + std::to_string(all.size())};
  }
  patcher into(target);
  for (const auto& operation : all) {
    if (!into.apply(operation.get_object())) {
      return problem{.code = 422,
                     .reason = "Invalid",
                     .message = "the server rejected our request due to an error in our request"};
    }
  }
  return {};
}

}  // namespace rw::k8s::devserver
