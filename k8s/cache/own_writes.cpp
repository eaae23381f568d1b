#include "k8s/cache/own_writes.hpp"

#include "k8s/objects/types.hpp"

#include <algorithm>
#include <string_view>

namespace rw::k8s {
namespace {

bool is_number(std::string_view version) {
  return !version.empty() && version.front() != '0' &&
         std::ranges::all_of(version, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_before(std::string_view a, std::string_view b) {
  if (!is_number(a) || !is_number(b)) return false;
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

}  // namespace

void own_writes::wrote(const boost::json::value& after) {
  written_.use(key_of(after)) = after;
}

boost::json::value own_writes::newest(const object& stored) {
  const auto key = stored.key();
  const auto* written = written_.find(key);
  if (written != nullptr && uid_of(*written) == stored.uid() &&
      is_before(stored.resource_version(), resource_version_of(*written))) {
    return *written;
  }
  written_.erase(key);
  return stored.parse();
}

}  // namespace rw::k8s
