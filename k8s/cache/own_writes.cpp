#include "rw/k8s/cache/own_writes.hpp"

#include "rw/k8s/objects/types.hpp"

namespace rw::k8s {
void own_writes::wrote(const boost::json::value& after) {
  written_.use(key_of(after)) = {after, clock_.now() + lifetime};
}

boost::json::value own_writes::newest(const object& stored) {
  const auto key = stored.key();
  const auto* written = written_.find(key);
  if (written != nullptr && clock_.now() < written->until &&
      uid_of(written->after) == stored.uid() &&
      is_older_version(stored.resource_version(), resource_version_of(written->after))) {
    return written->after;
  }
  written_.erase(key);
  return stored.parse();
}

}  // namespace rw::k8s
