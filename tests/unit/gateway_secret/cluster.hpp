#pragma once

#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include "tests/unit/environment/simulated.hpp"
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::gateway_secret::test {

/// A control plane's API server with the namespace istio-system, on a clock that the test moves.
class cluster : public rw::test::simulated {
 public:
  using value = boost::json::value;

  cluster() { finish(rw::test::simulated::define({}, {"istio-system"})); }
  ~cluster() override { stop(); }

  k8s::informer& inform(const k8s::resource_type& type, k8s::informer_options options) {
    options.streaming_list = false;
    return simulated::inform(type, std::move(options));
  }

  /// A CustomResourceDefinition of deploy/dev.
  void define(const std::string& file) { finish(simulated::define({"dev/" + file}, {})); }

  static value named(std::string_view ns, std::string_view name, std::string_view api_version,
                     std::string_view kind) {
    boost::json::object metadata{{"name", name}};
    if (!ns.empty()) metadata["namespace"] = ns;
    return boost::json::object{
        {"apiVersion", api_version}, {"kind", kind}, {"metadata", std::move(metadata)}};
  }
  /// A Secret with this data in istio-system.
  static value secret(std::string_view name,
                      const std::vector<std::pair<std::string, std::string>>& data) {
    auto made = named("istio-system", name, "v1", "Secret");
    for (const auto& [entry, bytes] : data) k8s::set_secret_data(made, entry, bytes);
    return made;
  }

  // The test's own requests, which must succeed.
  value create(const k8s::resource_type& type, value object) {
    return ok(own().create(type, std::move(object)));
  }
  value update(const k8s::resource_type& type, value object) {
    return ok(own().update(type, std::move(object)));
  }
  value put(const k8s::resource_type& type, value object) {
    return ok(own().apply(type, std::move(object), {.field_manager = "test", .force = true}));
  }
  void remove(const k8s::resource_type& type, const std::string& name) {
    ok(own().remove(type, {"istio-system", name}));
  }
  value get(const k8s::resource_type& type, const std::string& name) {
    return ok(own().get(type, {"istio-system", name}));
  }
  /// None if it is not there.
  std::optional<value> find(const k8s::resource_type& type, const std::string& name) {
    auto got = call(own().get(type, {"istio-system", name}));
    if (!got) return std::nullopt;
    return std::move(*got);
  }

  /// Lets a little time pass until the condition holds.
  void until(const std::function<bool()>& condition, std::string_view what) {
    eventually(condition, what);
  }

  /// Ends everything that was spawned.
  void stop() {
    simulated::finish(reactor_api->close());
    simulated::finish(close());
  }

  k8s::client& own() { return api("kcp"); }
  const std::unique_ptr<k8s::client> reactor_api = connect("kcp", {.name = "reactor"});
};

}  // namespace rw::gateway_secret::test
