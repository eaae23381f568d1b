#include "rw/k8s/cache/own_writes.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/serialize.hpp>

namespace rw::k8s {

void own_writes::wrote(const boost::json::value& after) {
  forget_old();
  const auto key = key_of(after);
  if (key.name.empty()) return;
  written_.use(key) = {object::from_text(boost::json::serialize(after)), clock_.now() + lifetime};
}

boost::json::value own_writes::newest(const object& stored) {
  forget_old();
  const auto key = stored.key();
  const auto* written = written_.find(key);
  if (written != nullptr && written->after.uid() == stored.uid() &&
      is_older_version(stored.resource_version(), written->after.resource_version())) {
    return written->after.parse();
  }
  written_.erase(key);
  return stored.parse();
}

void own_writes::forget_old() {
  written_.erase_oldest_while([&](const write& each) { return each.until <= clock_.now(); });
}

}  // namespace rw::k8s
