#include "rw/reactors/shared/content_digest.hpp"

#include "rw/core/text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace rw {
namespace {

namespace json = boost::json;

constexpr std::size_t bytes_shown = 16;

}  // namespace

void content_digest::put(char kind, std::string_view bytes) {
  std::array<char, 9> head{kind};
  for (std::size_t i = 0; i < 8; ++i) {
    head[i + 1] = static_cast<char>(static_cast<std::uint64_t>(bytes.size()) >> (8 * i));
  }
  stream_.add({head.data(), head.size()}).add(bytes);
}

content_digest& content_digest::add(std::string_view text) {
  put('s', text);
  return *this;
}

content_digest& content_digest::add(const json::value& value) {
  if (const auto* const text = value.if_string()) return add(std::string_view(*text));
  if (const auto* const list = value.if_array()) {
    put('a', std::to_string(list->size()));
    for (const auto& one : *list) add(one);
    return *this;
  }
  if (const auto* const object = value.if_object()) {
    std::vector<const json::key_value_pair*> members;
    members.reserve(object->size());
    for (const auto& one : *object) members.push_back(&one);
    std::ranges::sort(members, {}, [](const auto* one) { return std::string_view(one->key()); });
    put('o', std::to_string(members.size()));
    for (const auto* const one : members) add(std::string_view(one->key())).add(one->value());
    return *this;
  }
  put('v', json::serialize(value));  // null, true, 1
  return *this;
}

std::string content_digest::hex() {
  const auto digest = stream_.finish();
  return core::hex({digest.data(), bytes_shown});
}

}  // namespace rw
