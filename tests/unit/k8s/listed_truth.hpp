#pragma once

#include <boost/json/value.hpp>

#include "tests/unit/k8s/history_participant.hpp"
#include <map>
#include <set>
#include <string>
#include <utility>

namespace rw::k8s::test {

/// What a list of ConfigMaps says that nothing disturbs.
class listed_truth final : public truth {
 public:
  void take(const boost::json::value& list) {
    objects_.clear();
    for (auto item : list.at("items").as_array()) {
      item.as_object()["kind"] = "ConfigMap";
      item.as_object()["apiVersion"] = "v1";
      item.at("metadata").as_object().erase("managedFields");
      const std::string name(item.at("metadata").at("name").as_string());
      objects_[name] = std::move(item);
    }
    taken_ = true;
  }
  /// There was an object of this uid.
  void lived(std::string uid) { uids_.insert(std::move(uid)); }

  std::size_t size() const override { return objects_.size(); }
  bool holds(const object& one, bool whole) const override {
    const auto found = objects_.find(std::string(one.name()));
    if (found == objects_.end() || !taken_) return false;
    const auto here = one.parse();
    if (whole) return here == found->second;
    return here.at("metadata") == found->second.at("metadata") &&
           !here.as_object().contains("data");
  }
  bool existed(const std::string& uid) const override { return uids_.contains(uid); }

  const std::map<std::string, boost::json::value>& objects() const noexcept { return objects_; }

 private:
  std::map<std::string, boost::json::value> objects_;
  std::set<std::string> uids_;
  bool taken_ = false;
};

}  // namespace rw::k8s::test
