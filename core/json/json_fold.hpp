#pragma once

#include "rw/core/json/json_view.hpp"
#include "rw/core/sip_hash.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rw::core {

/// Makes one number of a JSON value from its leaves up, in one pass over its tokens. The order of
/// an object's members does not count, and of several of one name only the last does.
///
/// `Hash` says what the number is made of:
///
///     std::uint64_t text(std::string_view content);           a string, without its escapes
///     std::uint64_t scalar(std::string_view text);            another scalar, as it is written
///     std::uint64_t begin_array();
///     std::uint64_t add_element(std::uint64_t array, std::uint64_t element);
///     std::uint64_t member(std::string_view name, std::uint64_t value);
///     std::uint64_t object(std::uint64_t sum);                 of the sum of its members' numbers
///
/// Takes time about linear in the value's length, and 16 bytes for each member of an object whose
/// end was not read yet.
template <typename Hash>
class json_fold {
 public:
  explicit json_fold(Hash hash = {}) : hash_(std::move(hash)) {}

  /// The value exists. Not to be used again after an exception.
  std::uint64_t operator()(json_view value) {
    value_ = value;
    open_.clear();
    members_.clear();
    std::uint64_t out = 0;
    const auto& tokens = value.tokens();
    for (const auto* at = tokens.begin; at != tokens.end; ++at) {
      switch (tokens.at(at)) {
        case ',':
        case ':':
          continue;
        case '{':
          open_.push_back({.is_object = true, .first = members_.size()});
          continue;
        case '[':
          open_.push_back({.number = hash_.begin_array()});
          continue;
        case '}':
        case ']':
          out = close();
          break;
        case '"':
          if (!open_.empty() && open_.back().is_object && tokens.at(at + 1) == ':') {
            begin_member(at);
            continue;
          }
          out = hash_.text(value_.content(at, buffer_));
          break;
        default:
          out = hash_.scalar(tokens.span(at, at + 1));
      }
      end_value(out);
    }
    return out;
  }

 private:
  using token = const std::uint32_t*;

  /// An array or object whose end was not read yet.
  struct level {
    bool is_object = false;
    bool ascending = true;     ///< its names, which are then different
    std::uint64_t number = 0;  ///< of an array
    std::size_t first = 0;     ///< its first member in members_
    std::size_t limit = 32;    ///< of members; then duplicates are dropped, to take no memory
    token name = nullptr;      ///< of the member that is being read
  };

  static constexpr std::uint32_t unknown_hash = 0;
  static constexpr std::size_t many = 1024;  // members

  struct member {
    std::uint32_t name;  ///< index of its token
    std::uint32_t name_hash = unknown_hash;
    std::uint64_t number;
  };

  std::size_t most_members() const noexcept {
    return static_cast<std::size_t>(value_.tokens().end - value_.tokens().begin) / 4 + 1;
  }
  std::uint32_t index_of(token at) const noexcept {
    return static_cast<std::uint32_t>(at - value_.tokens().begin);
  }
  std::string_view name_of(const member& of, std::string& buffer) const {
    return value_.content(value_.tokens().begin + of.name, buffer);
  }
  std::string_view raw_name(token at) const noexcept { return value_.tokens().span(at, at + 1); }

  void begin_member(token at) {
    auto& object = open_.back();
    if (object.ascending) {
      const auto name = raw_name(at);
      object.ascending = (object.name == nullptr || raw_name(object.name) < name) &&
                         name.find('\\') == std::string_view::npos;
    }
    object.name = at;
  }

  void end_value(std::uint64_t number) {
    if (open_.empty()) return;
    auto& in = open_.back();
    if (!in.is_object) {
      in.number = hash_.add_element(in.number, number);
      return;
    }
    const auto name = value_.content(in.name, buffer_);
    // A member has at least four tokens: many grow once, without a second copy.
    if (members_.size() == members_.capacity() && members_.size() >= many) {
      members_.reserve(std::max(most_members(), members_.size() + 1));
    }
    const auto name_hash = in.ascending ? unknown_hash : hash_of(name);
    members_.push_back({index_of(in.name), name_hash, hash_.member(name, number)});
    if (in.ascending || members_.size() - in.first < in.limit) return;
    drop_duplicates(in);
    in.limit = std::max(in.limit, 2 * (members_.size() - in.first));
  }

  std::uint64_t close() {
    auto closed = open_.back();
    open_.pop_back();
    if (!closed.is_object) return closed.number;
    if (!closed.ascending) drop_duplicates(closed);
    std::uint64_t sum = 0;
    for (auto i = closed.first; i < members_.size(); ++i) sum += members_[i].number;
    members_.resize(closed.first);
    return hash_.object(sum);
  }

  /// Keeps the last member of each name: sorts by a hash of the names that nobody can aim at, so
  /// that few different ones meet. Looks at a name's bytes once, and again only beside an equal
  /// hash.
  void drop_duplicates(const level& of) {
    const auto begin = members_.begin() + static_cast<std::ptrdiff_t>(of.first);
    for (auto at = begin; at != members_.end(); ++at) {
      if (at->name_hash == unknown_hash) at->name_hash = hash_of(name_of(*at, buffer_));
    }
    std::sort(begin, members_.end(), [](const member& a, const member& b) {
      return a.name_hash != b.name_hash ? a.name_hash < b.name_hash : a.name > b.name;
    });
    auto kept = begin;
    auto run = begin;  // of kept ones that have the hash of the last
    for (auto at = begin; at != members_.end(); ++at) {
      if (run != kept && run->name_hash != at->name_hash) run = kept;
      if (run == kept || !is_among(run, kept, *at)) *kept++ = *at;
    }
    members_.erase(kept, members_.end());
  }

  static std::uint32_t hash_of(std::string_view name) {
    return static_cast<std::uint32_t>(foreign_text_hash()(name)) | 1;
  }

  using member_iterator = typename std::vector<member>::iterator;

  bool is_among(member_iterator begin, member_iterator end, const member& of) {
    const auto name = name_of(of, buffer_);
    return std::any_of(begin, end,
                       [&](const member& last) { return name_of(last, other_buffer_) == name; });
  }

  Hash hash_;
  json_view value_;
  std::vector<level> open_;
  std::vector<member> members_;
  std::string buffer_;
  std::string other_buffer_;
};

}  // namespace rw::core
