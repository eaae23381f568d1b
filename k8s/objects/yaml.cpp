#include "rw/k8s/objects/yaml.hpp"

#include "rw/core/json_text.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/read_json.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace rw::k8s {
namespace {

namespace json = boost::json;
using wrong = yaml_type_error;

std::size_t line_of(const YAML::Mark& state) {
  return state.is_null() ? 0 : static_cast<std::size_t>(state.line) + 1;
}

constexpr unsigned deepest = 128;
constexpr std::string_view core_tags = "tag:yaml.org,2002:";
constexpr std::string_view binary_tag = "tag:yaml.org,2002:binary";
constexpr std::string_view merge_tag = "tag:yaml.org,2002:merge";

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

/// Go's strconv.ParseInt with base 0: the prefix names the base, a leading zero means octal.
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

json::value plain(const yaml_node& node) {
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

json::value tagged(const yaml_node& node, std::string_view tag) {
  if (tag == "str") return json::string(node.text);
  auto value = plain(node);
  const bool fits = (tag == "int" && (value.is_int64() || value.is_uint64())) ||
                    (tag == "bool" && value.is_bool()) || (tag == "null" && value.is_null()) ||
                    (tag == "float" && value.is_number());
  if (!fits) throw wrong(node, "\"" + node.text + "\" is no " + std::string(tag));
  return value;
}

json::value scalar(const yaml_node& node) {
  const auto& text = node.text;
  const std::string_view tag = node.tag;
  // "!" is the tag of quoted text, "?" of unquoted text.
  if (tag == "!") return json::string(text);
  if (tag.starts_with(core_tags)) return tagged(node, tag.substr(core_tags.size()));
  if (!tag.empty() && tag != "?") throw wrong(node, "the tag " + node.tag + " is not known");
  return plain(node);
}

std::string key(const yaml_node& node) {
  if (node.type != yaml_node::kind::scalar) throw wrong(node, "a key is no string");
  const auto value = scalar(node);
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_null()) throw wrong(node, "a key is empty");
  return node.text;
}

}  // namespace

class yaml_stream::builder final : public YAML::EventHandler {
 public:
  builder(yaml_stream& into, std::size_t most) : into_(into), most_(most) {}

  void OnDocumentStart(const YAML::Mark& state) override {
    const auto before = into_.documents_.size();
    // The parser has not advanced: it does not handle the character there.
    if (before > 0 && state.pos <= began_) fail(state, "is not YAML: unexpected character");
    began_ = state.pos;
    into_.documents_.push_back(nullptr);
    anchors_.clear();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& state, YAML::anchor_t anchor) override {
    add(make(state, yaml_node::kind::null, {}, anchor));
  }
  void OnAlias(const YAML::Mark& state, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(state, "is not YAML: an alias without an anchor");
    add(found->second);
  }
  void OnScalar(const YAML::Mark& state, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool is_binary = tag == binary_tag;
    auto* const node = make(state, yaml_node::kind::scalar, is_binary ? "!" : tag, anchor);
    node->text = is_binary ? decoded(state, value) : value;
    add(node);
  }
  void OnSequenceStart(const YAML::Mark& state, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make(state, yaml_node::kind::sequence, tag, anchor));
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& state, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make(state, yaml_node::kind::map, tag, anchor));
  }
  void OnMapEnd() override {
    auto* const node = open_.back();
    open_.pop_back();
    for (std::size_t i = 0; i + 1 < node->items.size(); i += 2) {
      if (is_merge(*node->items[i])) return merge(*node);
    }
  }

  std::size_t document() const noexcept { return into_.documents_.size(); }

 private:
  [[noreturn]] void fail(const YAML::Mark& state, const char* reason) const {
    throw yaml_error(document(), line_of(state), reason);
  }

  yaml_node* make(const YAML::Mark& state, yaml_node::kind kind, const std::string& tag,
                  YAML::anchor_t anchor) {
    if (into_.nodes_.size() >= most_) fail(state, "is too large");
    auto& node = into_.nodes_.emplace_back();
    node.type = kind;
    node.line = line_of(state);
    node.tag = tag;
    if (anchor != YAML::NullAnchor) anchors_[anchor] = &node;
    return &node;
  }

  static bool is_merge(const yaml_node& key) {
    return key.type == yaml_node::kind::scalar && key.text == "<<" &&
           (key.tag == "?" || key.tag == merge_tag);
  }

  /// Puts in what the map merges: its own keys stay, and of several maps the earlier ones count.
  void merge(yaml_node& into) {
    std::vector<const yaml_node*> items;
    std::vector<const yaml_node*> merged;
    std::set<std::string_view> names;
    for (std::size_t i = 0; i + 1 < into.items.size(); i += 2) {
      const auto* const key = into.items[i];
      const auto* const value = into.items[i + 1];
      if (!is_merge(*key)) {
        names.insert(key->text);
        items.insert(items.end(), {key, value});
      } else if (value->type == yaml_node::kind::sequence) {
        merged.insert(merged.end(), value->items.begin(), value->items.end());
      } else {
        merged.push_back(value);
      }
    }
    for (const auto* const from : merged) {
      if (from->type != yaml_node::kind::map) fail(into, "<< merges what is no mapping");
      if (from == &into || std::ranges::find(open_, from) != open_.end())
        fail(into, "<< merges a mapping into itself");
      for (std::size_t i = 0; i + 1 < from->items.size(); i += 2) {
        if (++merged_ > most_) fail(into, "is too large once its aliases are followed");
        if (!names.insert(from->items[i]->text).second) continue;
        items.insert(items.end(), {from->items[i], from->items[i + 1]});
      }
    }
    into.items = std::move(items);
  }

  std::string decoded(const YAML::Mark& state, const std::string& text) const {
    auto bytes = base64_decode(text);
    if (!bytes || !core::is_utf8(*bytes)) fail(state, "has a !!binary that is no base64 of a text");
    return std::move(*bytes);
  }

  [[noreturn]] void fail(const yaml_node& at, const char* reason) const {
    throw yaml_error(document(), at.line, reason);
  }

  void add(const yaml_node* node) {
    if (open_.empty()) {
      into_.documents_.back() = node;
    } else {
      open_.back()->items.push_back(node);
    }
  }

  void open(yaml_node* node) {
    add(node);
    open_.push_back(node);
  }

  yaml_stream& into_;
  const std::size_t most_;
  std::size_t merged_ = 0;  ///< entries that were looked at
  int began_ = 0;           ///< position of the document's beginning
  std::vector<yaml_node*> open_;
  std::unordered_map<YAML::anchor_t, const yaml_node*> anchors_;
};

yaml_stream::yaml_stream(const std::string& text, std::size_t most) {
  builder events(*this, most);
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(events)) {
    }
  } catch (const YAML::Exception& e) {
    throw yaml_error(events.document(), line_of(e.mark), "is not YAML: " + e.msg);
  }
}

yaml_reader::yaml_reader(std::size_t most, std::size_t bytes)
    : left_(most),
      memory_(std::max(json_budget().memory_of_each_byte * bytes, json_budget().least_memory)),
      comparisons_(json_budget().comparisons) {}

void yaml_reader::charge(const yaml_node& node, std::size_t bytes) {
  if (bytes > memory_) throw wrong(node, "is too large once its aliases are followed");
  memory_ -= bytes;
}

/// Looks a name up where others may have chosen the hashes of all.
bool yaml_reader::contains(const yaml_node& node, const json::object& of, std::string_view name) {
  constexpr std::size_t few = 18;  // up to here Boost.JSON has no hashes
  const auto most = of.size() > few ? of.size() : 0;
  if (most > comparisons_) throw wrong(node, "has too many members");
  comparisons_ -= most;
  return of.contains(name);
}

json::value yaml_reader::read(const yaml_node& node, unsigned depth) {
  if (depth > deepest) throw wrong(node, "is nested too deeply");
  if (left_ == 0) throw wrong(node, "is too large once its aliases are followed");
  --left_;
  const bool is_leaf = node.items.empty();
  charge(node, (is_leaf ? 1 : 2) * sizeof(json::value) + node.text.size());
  switch (node.type) {
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

json::value yaml_reader::map(const yaml_node& node, unsigned depth) {
  json::object object;
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const auto& field = *node.items[i];
    const auto& value = *node.items[i + 1];
    const auto name = key(field);
    if (contains(field, object, name)) throw wrong(field, "\"" + name + "\" is there twice");
    charge(field, sizeof(json::key_value_pair) - sizeof(json::value) + name.size());
    object.emplace(name, read(value, depth + 1));
  }
  return object;
}

}  // namespace rw::k8s
