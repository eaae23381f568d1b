#include "rw/k8s/objects/read_json.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse_options.hpp>
#include <boost/json/parser.hpp>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

namespace rw::k8s {
namespace {

namespace json = boost::json;

// Boost.JSON 1.81, detail/object.hpp and impl/array.hpp: what stands before the members, elements
// and characters; and a bucket for each member of a larger object.
constexpr std::size_t table_header = 16;
constexpr std::size_t bucket = 4;
constexpr std::size_t without_buckets = 18;
constexpr std::size_t in_place = 14;  // characters of a string that need no memory of their own

/// Of glibc: a header, and multiples of 16.
constexpr std::size_t allocated(std::size_t bytes) noexcept {
  return std::max<std::size_t>(32, (bytes + 8 + 15) & ~std::size_t{15});
}

class counter {
 public:
  counter(std::string_view text, std::size_t max_depth) : text_(text), max_depth_(max_depth) {}

  json_cost run() {
    std::size_t at = 0;
    while (at < text_.size()) {
      const char c = text_[at];
      if (c == '"') {
        at = string(at);
      } else if (c == '{' || c == '[') {
        if (open_.size() == max_depth_) {
          cost_.is_too_deep = true;
          break;
        }
        value(0);
        open_.push_back({.is_object = c == '{'});
        expects_name_ = c == '{';
        ++at;
      } else if (c == '}' || c == ']') {
        close();
        ++at;
      } else if (c == ',') {
        expects_name_ = !open_.empty() && open_.back().is_object;
        ++at;
      } else if (c == ':' || is_space(c)) {
        ++at;
      } else {
        value(0);
        while (at < text_.size() && !ends_scalar(text_[at])) ++at;
      }
    }
    while (!open_.empty()) close();
    // The parser's stack doubles.
    cost_.memory += sizeof(json::value) * std::bit_ceil(most_pending_ + 1);
    return cost_;
  }

 private:
  struct level {
    bool is_object = false;
    std::size_t size = 0;
  };

  static bool is_space(char c) noexcept { return static_cast<unsigned char>(c) <= ' '; }
  static bool ends_scalar(char c) noexcept {
    return is_space(c) || c == ',' || c == '}' || c == ']' || c == '{' || c == '[' || c == '"' ||
           c == ':';
  }

  std::size_t string(std::size_t at) {
    auto end = at + 1;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    const auto size = end - at - 1;
    if (expects_name_) {
      cost_.memory += allocated(size + 1);
      pend(1);
      expects_name_ = false;
    } else {
      value(size);
    }
    return end + 1;
  }

  void value(std::size_t characters) {
    if (characters > in_place) cost_.memory += allocated(table_header + characters + 1);
    if (!open_.empty()) ++open_.back().size;
    pend(1);
  }

  void close() {
    if (open_.empty()) return;
    const auto closed = open_.back();
    open_.pop_back();
    const auto n = closed.size;
    pending_ -= std::min(pending_, closed.is_object ? 2 * n : n);
    if (n == 0) return;
    if (!closed.is_object) {
      cost_.memory += allocated(table_header + n * sizeof(json::value));
      return;
    }
    const bool has_buckets = n > without_buckets;
    cost_.memory +=
        allocated(table_header + n * (sizeof(json::key_value_pair) + (has_buckets ? bucket : 0)));
    if (has_buckets) cost_.comparisons += std::uint64_t{n} * n;
  }

  void pend(std::size_t values) {
    pending_ += values;
    most_pending_ = std::max(most_pending_, pending_);
  }

  std::string_view text_;
  std::size_t max_depth_;
  std::vector<level> open_;
  bool expects_name_ = false;
  std::size_t pending_ = 0;  ///< values and names on the parser's stack
  std::size_t most_pending_ = 0;
  json_cost cost_;
};

}  // namespace

json_cost json_cost_of(std::string_view text, std::size_t max_depth) {
  return counter(text, max_depth).run();
}

std::string_view over_budget(std::string_view text, const json_budget& budget) {
  const auto cost = json_cost_of(text, budget.depth);
  if (cost.is_too_deep) return "nests too deep";
  if (cost.comparisons > budget.comparisons) return "has objects of too many members";
  const auto memory = std::max(budget.least_memory, text.size() * budget.memory_of_each_byte);
  return cost.memory > memory ? "has more values than its length is good for" : "";
}

boost::system::result<json::value, core::text_error> read_json(std::string_view text,
                                                               const json_budget& budget) {
  const auto over = budget.is_counted ? over_budget(text, budget) : std::string_view();
  if (!over.empty()) {
    return core::text_error{std::string(over)};
  }
  json::parse_options options;
  options.max_depth = budget.depth;
  json::parser parser({}, options);
  boost::system::error_code error;
  const auto read = parser.write_some(text.data(), text.size(), error);
  if (!error && text.find_first_not_of(" \t\r\n", read) == std::string_view::npos) {
    return parser.release();
  }
  return core::text_error{"is not JSON, from byte " + std::to_string(read + 1) + " on" +
                          (error ? " (" + error.message() + ")" : std::string())};
}

}  // namespace rw::k8s
