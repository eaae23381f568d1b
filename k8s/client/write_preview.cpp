#include "rw/k8s/client/write_preview.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>

namespace rw::k8s {
namespace {

namespace json = boost::json;

void drop_bookkeeping(json::value& object) {
  if (!object.is_object()) return;
  object.as_object().erase("status");
  auto* const metadata = object.as_object().if_contains("metadata");
  if (metadata == nullptr || !metadata->is_object()) return;
  for (const auto* name : {"managedFields", "resourceVersion", "generation", "uid",
                           "creationTimestamp", "selfLink", "deletionGracePeriodSeconds"}) {
    metadata->get_object().erase(name);
  }
}

}  // namespace

void write_preview::bound(tried_write& write) {
  const auto size = json::serialize(write.live).size() + json::serialize(write.next).size();
  write.left_out = size > rest_;
  if (write.left_out) write.live = write.next = nullptr;
  if (!write.left_out) rest_ -= size;
}

void write_preview::add(tried_write write) {
  drop_bookkeeping(write.live);
  drop_bookkeeping(write.next);
  const auto known = std::ranges::find_if(writes_, [&](const tried_write& each) {
    return each.type == write.type && each.key == write.key;
  });
  if (known == writes_.end()) {
    bound(write);
    writes_.push_back(std::move(write));
    return;
  }
  if (known->left_out || write.next == known->live) return;
  rest_ += json::serialize(known->live).size() + json::serialize(known->next).size();
  known->next = std::move(write.next);
  bound(*known);
}

bool write_preview::makes_room_for(const resource_type& type, const object_key& key) const {
  return std::ranges::any_of(writes_, [&](const tried_write& each) {
    if (!each.live.is_null()) return false;
    const auto& kind = each.type.gvk.kind;
    if (kind == "Namespace") return type.namespaced && each.key.name == key.ns;
    return kind == "CustomResourceDefinition" &&
           find_string(each.next, {"spec", "group"}) == type.gvk.group &&
           find_string(each.next, {"spec", "names", "kind"}) == type.gvk.kind;
  });
}

}  // namespace rw::k8s
