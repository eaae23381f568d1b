#pragma once

#include "rw/k8s/objects/names.hpp"
#include "rw/k8s/objects/object.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s {

/// The objects of one resource, by key and by indexes. On one executor; the objects themselves may
/// go anywhere.
class store {
 public:
  /// The values that an object is found by in one index; appends them to `values`.
  using index_function = std::function<void(const object& from, std::vector<std::string>& values)>;

  store();
  ~store();
  store(const store&) = delete;
  store& operator=(const store&) = delete;

  /// Adds an index, and fills it with what is there. Throws std::invalid_argument if the name is
  /// taken.
  void add_index(const std::string& name, index_function by);
  /// Takes an index away; its name is free again. None of that name: nothing happens.
  void remove_index(const std::string& name);

  /// Empty if there is none.
  object get(std::string_view ns, std::string_view name) const;
  object get(const object_key& key) const { return get(key.ns, key.name); }
  /// All objects, in no order.
  std::vector<object> list() const;
  void for_each(const std::function<void(const object&)>& visit) const;
  /// The objects with `value` in the index. Throws std::invalid_argument if there is no such index.
  std::vector<object> by_index(const std::string& index, std::string_view value) const;
  std::size_t size() const noexcept;

  /// Puts an object in, and gives back the one that it replaced.
  object put(object next);
  /// Takes an object out and gives it back; empty if there was none.
  object erase(std::string_view ns, std::string_view name);

 private:
  class implementation;
  std::unique_ptr<implementation> impl_;
};

}  // namespace rw::k8s
