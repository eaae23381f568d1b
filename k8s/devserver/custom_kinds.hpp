#pragma once

#include "rw/k8s/devserver/kinds.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace rw::k8s::devserver {

/// The custom resources of a cluster, and the look-up of any resource.
class custom_kinds {
 public:
  void set(std::shared_ptr<const resource> kind);
  void remove(std::string_view group, std::string_view plural);

  /// Finds a custom or built-in resource; returns nothing if the cluster does not serve it.
  served_resource find(std::string_view group, std::string_view version,
                       std::string_view plural) const;
  /// Finds it by kind, in any version if that is empty.
  served_resource find_kind(std::string_view group, std::string_view version,
                            std::string_view kind) const;
  /// Finds it by group and plural, in any version; null if there is none.
  std::shared_ptr<const resource> find(std::string_view group, std::string_view plural) const;

  /// Calls `visit` with all resources of the cluster, built-in ones first.
  void for_each(const std::function<void(const std::shared_ptr<const resource>&)>& visit) const;

 private:
  std::map<std::string, std::shared_ptr<const resource>, std::less<>> custom_;
};

}  // namespace rw::k8s::devserver
