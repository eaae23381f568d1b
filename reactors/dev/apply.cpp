#include "rw/reactors/dev/apply.hpp"

#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/dev/manifests.hpp"
#include "rw/reactors/shared/issuer_kind.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/trust_bundles_type.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <array>
#include <stdexcept>
#include <utility>

namespace rw::dev {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::find_string;

constexpr auto retry_interval = std::chrono::milliseconds(20);
constexpr auto served_within = std::chrono::seconds(60);  // kube-apiserver needs some time

k8s::resource_type type_of(const json::value& object) {
  const auto version = find_string(object, {"apiVersion"});
  const auto kind = find_string(object, {"kind"});
  if (auto known = k8s::well_known_type(version, kind)) return *known;
  for (const auto* type :
       {&watchers_type(), &kymas_type(), &gateways_type(), &runtimes_type(), &trust_bundles_type(),
        &certificates::issuers_type(certificates::issuer_kind::cert_manager)}) {
    if (type->gvk.api_version() == version && type->gvk.kind == kind) return *type;
  }
  throw std::logic_error("no such kind in a manifest: " + std::string(kind));
}

[[noreturn]] void fail(const k8s::client& api, const json::value& object,
                       const std::string& reason) {
  throw std::runtime_error(api.configuration().server + ": " +
                           std::string(find_string(object, {"kind"})) + " " +
                           to_string(k8s::key_of(object)) + " can't be applied: " + reason);
}

bool is_definition(const json::value& object) {
  return find_string(object, {"kind"}) == "CustomResourceDefinition";
}

asio::awaitable<void> wait_served(k8s::client* api, core::clock* time, json::value definition) {
  const auto executor = co_await asio::this_coro::executor;
  const auto pause = time->make_timer(executor);
  const auto until = time->now() + served_within;
  for (;;) {
    const auto now = co_await api->get(type_of(definition), k8s::key_of(definition));
    if (now) {
      const auto established = k8s::find_condition(*now, "Established");
      if (established && established->status == "True") co_return;
    }
    if (time->now() >= until) {
      fail(*api, definition, now ? "it is not served yet" : now.error().message);
    }
    pause->expires_at(time->now() + retry_interval);
    const bool due = co_await pause->wait();
    if (!due) throw boost::system::system_error(asio::error::operation_aborted);
  }
}

}  // namespace

asio::awaitable<void> apply_manifests(k8s::client* api, core::clock* time, std::string text,
                                      std::string defining) {
  auto objects = k8s::parse_manifests(text);
  if (!objects) throw std::logic_error("manifests: " + objects.error().message());
  if (!defining.empty()) {
    std::erase_if(*objects, [&](const json::value& object) {
      return !is_definition(object) || find_string(object, {"spec", "names", "kind"}) != defining;
    });
  }
  k8s::sort_for_apply(*objects);
  for (const auto& object : *objects) {
    if (is_definition(object)) {
      const auto made = co_await api->create(type_of(object), object);
      const bool there = made || made.error().is(k8s::errc::already_exists);
      if (!there) fail(*api, object, made.error().message);
      continue;
    }
    const k8s::apply_options options{.field_manager = "runtime-watcher-dev", .force = true};
    const auto done = co_await api->apply(type_of(object), object, options);
    if (!done) fail(*api, object, done.error().message);
  }
  for (const auto& object : *objects) {
    if (is_definition(object)) co_await wait_served(api, time, object);
  }
}

}  // namespace rw::dev
