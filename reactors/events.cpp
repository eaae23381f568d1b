#include "reactors/events.hpp"

#include "core/hash.hpp"

namespace rw {

std::size_t watch_event_hash::operator()(const watch_event& event) const noexcept {
  return core::string_hash()
      .add(event.watched.name)
      .add(event.watched.ns)
      .add(event.gvk.kind)
      .add(event.gvk.group)
      .add(event.gvk.version)
      .add(event.manager)
      .add(event.owner.name)
      .add(event.owner.ns)
      .value();
}

}  // namespace rw
