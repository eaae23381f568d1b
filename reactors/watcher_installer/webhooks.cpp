#include "rw/reactors/watcher_installer/webhooks.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/watcher.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace rw::watcher_installer {

namespace json = boost::json;

std::vector<json::value> webhooks_of(const json::value* configuration,
                                     const std::function<bool(std::string_view name)>& matches) {
  std::vector<json::value> out;
  const auto* const all =
      configuration == nullptr ? nullptr : k8s::find_array(*configuration, {"webhooks"});
  if (all == nullptr) return out;
  std::ranges::copy_if(*all, std::back_inserter(out), [&](const json::value& webhook) {
    return matches(k8s::find_string(webhook, {"name"}));
  });
  return out;
}

void retain_webhooks(json::value& configuration,
                     const std::function<bool(std::string_view name)>& matches) {
  json::array kept;
  for (auto& webhook : webhooks_of(&configuration, matches)) kept.push_back(std::move(webhook));
  configuration.as_object()["webhooks"] = std::move(kept);
}

std::vector<std::string> unwanted_webhooks(const json::value& wanted, const json::value& present) {
  const auto names = [](const json::value& of) {
    std::set<std::string_view> out;
    const auto* const all = k8s::find_array(of, {"webhooks"});
    if (all == nullptr) return out;
    for (const auto& webhook : *all) out.insert(k8s::find_string(webhook, {"name"}));
    return out;
  };
  const auto keep = names(wanted);
  std::vector<std::string> out;
  for (const auto name : names(present)) {
    if (name.ends_with(webhook_suffix) && !keep.contains(name)) out.emplace_back(name);
  }
  return out;
}

}  // namespace rw::watcher_installer
