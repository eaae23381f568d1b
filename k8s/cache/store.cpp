#include "rw/k8s/cache/store.hpp"

#include "rw/core/sip_hash.hpp"
#include "rw/k8s/objects/object_set.hpp"

#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace rw::k8s {
namespace {

/// Puts `next` in the place of an object of the same name.
object put_into(object_set& set, object next) {
  const auto found = set.find(next);
  if (found == set.end()) {
    set.insert(std::move(next));
    return {};
  }
  // Elements are constant because of their place, which depends on the name alone.
  return std::exchange(const_cast<object&>(*found), std::move(next));
}

std::vector<object> all_of(const object_set& set) {
  return {set.begin(), set.end()};
}

/// Which objects have which value.
class index {
 public:
  explicit index(store::index_function by) : function_(std::move(by)) {}

  void add(const object& object) {
    for (auto& value : values_of(object)) put_into(objects_[std::move(value)], object);
  }

  void remove(const object& object) {
    for (const auto& value : values_of(object)) {
      const auto found = objects_.find(value);
      if (found == objects_.end()) continue;
      found->second.erase(object);
      if (found->second.empty()) objects_.erase(found);
    }
  }

  std::vector<object> find(std::string_view value) const {
    const auto found = objects_.find(std::string(value));
    return found == objects_.end() ? std::vector<object>() : all_of(found->second);
  }

 private:
  std::vector<std::string> values_of(const object& object) const {
    std::vector<std::string> values;
    function_(object, values);
    return values;
  }

  const store::index_function function_;
  std::unordered_map<std::string, object_set, core::foreign_text_hash> objects_;
};

}  // namespace

class store::implementation {
 public:
  object_set objects;
  std::unordered_map<std::string, index> indexes;
};

store::store() : impl_(std::make_unique<implementation>()) {}
store::~store() = default;

void store::add_index(const std::string& name, index_function by) {
  const auto [added, is_new] = impl_->indexes.try_emplace(name, std::move(by));
  if (!is_new) throw std::invalid_argument("k8s::store: there is an index '" + name + "' already");
  for (const auto& each : impl_->objects) added->second.add(each);
}

void store::remove_index(const std::string& name) {
  impl_->indexes.erase(name);
}

object store::get(std::string_view ns, std::string_view name) const {
  const auto found = impl_->objects.find(object_name{ns, name});
  return found == impl_->objects.end() ? object() : *found;
}

std::vector<object> store::list() const {
  return all_of(impl_->objects);
}

void store::for_each(const std::function<void(const object&)>& each) const {
  for (const auto& object : impl_->objects) each(object);
}

std::vector<object> store::by_index(const std::string& index, std::string_view value) const {
  const auto found = impl_->indexes.find(index);
  if (found == impl_->indexes.end()) {
    throw std::invalid_argument("k8s::store: there is no index '" + index + "'");
  }
  return found->second.find(value);
}

std::size_t store::size() const noexcept {
  return impl_->objects.size();
}

object store::put(object next) {
  for (auto& [name, each] : impl_->indexes) {
    const auto before = get(next.ns(), next.name());
    if (before) each.remove(before);
    each.add(next);
  }
  return put_into(impl_->objects, std::move(next));
}

object store::erase(std::string_view ns, std::string_view name) {
  const auto found = impl_->objects.find(object_name{ns, name});
  if (found == impl_->objects.end()) return {};
  auto gone = *found;
  impl_->objects.erase(found);
  for (auto& [unused, each] : impl_->indexes) each.remove(gone);
  return gone;
}

}  // namespace rw::k8s
