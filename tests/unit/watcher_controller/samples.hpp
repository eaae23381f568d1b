#pragma once

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <string>
#include <string_view>

namespace rw::watcher_controller_test {

/// A Watcher without fault, as the API gives it back.
inline boost::json::value valid_watcher() {
  return boost::json::parse(R"({
    "apiVersion": "operator.kyma-project.io/v1beta2",
    "kind": "Watcher",
    "metadata": {"name": "kyma", "namespace": "kcp-system", "uid": "u1", "generation": 3},
    "spec": {
      "resourceToWatch": {"group": "operator.kyma-project.io", "version": "*",
                          "resource": "kymas"},
      "labelsToWatch": {"operator.kyma-project.io/watched-by": "kyma"},
      "field": "spec",
      "manager": "lifecycle-manager",
      "serviceInfo": {"name": "events", "port": 8082, "namespace": "kcp-system"},
      "gateway": {"selector": {"matchLabels": {"gw": "default"}}}
    }
  })");
}

/// `object` with `text` (JSON) at a pointer such as "/spec/field"; "absent" takes away what is
/// there.
inline boost::json::value with(boost::json::value object, std::string_view pointer,
                               std::string_view text) {
  const auto slash = pointer.rfind('/');
  auto& parent = object.at_pointer(pointer.substr(0, slash)).as_object();
  const auto name = pointer.substr(slash + 1);
  if (text == "absent") {
    parent.erase(name);
  } else {
    parent[name] = boost::json::parse({text.data(), text.size()});
  }
  return object;
}

}  // namespace rw::watcher_controller_test
