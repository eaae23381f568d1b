#include "rw/k8s/devserver/element_order.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr auto nowhere = static_cast<std::size_t>(-1);

/// An item with its positions before the patch and in the requested order.
struct placed {
  std::size_t first;
  std::size_t server;
  std::size_t merged;
};

std::size_t place_in(const item_positions& positions, const std::string& item) {
  const auto found = positions.find(item);
  return found != positions.end() ? found->second : nowhere;
}

}  // namespace

const json::value* item_identity::of(const json::value& item) const {
  if (!by_key()) return &item;
  return item.is_object() ? item.get_object().if_contains(key_) : nullptr;
}

std::string item_identity::text(const json::value& item) const {
  const auto* const found = of(item);
  return found != nullptr ? json::serialize(*found) : std::string();
}

item_positions positions_in(const json::array& list, const item_identity& by) {
  item_positions found;
  for (std::size_t i = 0; i < list.size(); ++i) found.emplace(by.text(list[i]), i);
  return found;
}

bool is_subsequence(const json::array& list, const json::array& in, const item_identity& by) {
  std::size_t met = 0;
  for (const auto& item : in) {
    if (met < list.size() && by.text(list[met]) == by.text(item)) ++met;
  }
  return met == list.size();
}

void order_items(json::array& list, const item_positions& first, const item_positions& server,
                 const item_identity& by) {
  std::vector<placed> named;
  std::vector<placed> rest;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto text = by.text(list[i]);
    const placed at{place_in(first, text), place_in(server, text), i};
    (at.first != nowhere ? named : rest).push_back(at);
  }
  std::ranges::sort(named, {}, [](const placed& at) { return std::pair(at.first, at.merged); });
  std::ranges::sort(rest, {}, [](const placed& at) { return std::pair(at.server, at.merged); });
  json::array ordered;
  ordered.reserve(list.size());
  auto other = rest.begin();
  for (const auto& place : named) {
    for (; other != rest.end() && other->server < place.server && place.server != nowhere;
         ++other) {
      ordered.push_back(std::move(list[other->merged]));
    }
    ordered.push_back(std::move(list[place.merged]));
  }
  for (; other != rest.end(); ++other) ordered.push_back(std::move(list[other->merged]));
  list = std::move(ordered);
}

}  // namespace rw::k8s::devserver
