#include "k8s/own_writes.hpp"

#include "k8s/types.hpp"

#include <algorithm>

namespace rw::k8s {

void own_writes::wrote(std::string_view before, const boost::json::value& after) {
  auto& one = written_[key_of(after)];
  // What was written earlier is followed on only if this write began where that one ended.
  if (resource_version_of(one.now) != before) one.before.clear();
  if (before != resource_version_of(after)) one.before.emplace_back(before);
  one.now = after;
}

boost::json::value own_writes::newest(const object& stored) {
  const auto at = written_.find(stored.key());
  if (at == written_.end()) return stored.parse();
  const auto& one = at->second;
  const bool behind = uid_of(one.now) == stored.uid() &&
                      std::ranges::find(one.before, stored.resource_version()) != one.before.end();
  if (behind) return one.now;
  written_.erase(at);
  return stored.parse();
}

}  // namespace rw::k8s
