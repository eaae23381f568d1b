#include "rw/reactors/bootstrapper/orphans.hpp"

#include "rw/core/metrics.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/resource.hpp"
#include "rw/reactors/shared/access_right.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <string>
#include <utility>

namespace rw::bootstrapper {

namespace asio = boost::asio;
namespace json = boost::json;

orphans::orphans(k8s::client& kcp, k8s::controller_environment in, core::duration interval)
    : kcp_(kcp),
      environment_(std::move(in)),
      interval_(interval),
      released_(core::make_counter(environment_.metrics, "rw_bootstrapper_released_total",
                                   "Number of deleted RuntimeBootstrappers released without an "
                                   "undeployment")) {}

/// Asks before: a request that is refused every half minute is an attack to those who watch the API
/// server's audit log.
asio::awaitable<k8s::result<void>> orphans::check_rights() {
  const auto& type = runtime_bootstrappers_type();
  for (const auto* const verb : {"list", "patch"}) {
    access_right right{.verb = verb,
                       .group = type.gvk.group,
                       .resource = type.plural,
                       .ns = std::string(kcp_namespace)};
    const auto may = co_await has_right(kcp_, right);
    if (!may) co_return may.error();
    if (!*may) {
      co_return k8s::failure{.code = k8s::errc::forbidden,
                             .message = "the manager may not " + text_of(right)};
    }
  }
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<void>> orphans::release_all() {
  const auto rights = co_await check_rights();
  if (!rights) co_return rights.error();
  k8s::selection all{.ns = std::string(kcp_namespace), .metadata_only = true};
  const auto list = co_await kcp_.list(runtime_bootstrappers_type(), std::move(all));
  if (!list && list.error().is(k8s::errc::not_found)) co_return k8s::result<void>();
  if (!list) co_return list.error();
  const auto* const items = k8s::find_array(*list, {"items"});
  for (const auto& each : items == nullptr ? json::array() : *items) {
    if (!k8s::is_being_deleted(each) || !k8s::has_finalizer(each, finalizer)) continue;
    auto rest = each;
    k8s::remove_finalizer(rest, finalizer);
    const auto* const left = k8s::find(rest, {"metadata", "finalizers"});
    json::object metadata{{"resourceVersion", k8s::resource_version_of(each)},
                          {"finalizers", left == nullptr ? json::value() : *left}};
    json::value change{{"metadata", std::move(metadata)}};
    const auto key = k8s::key_of(each);
    const auto done = co_await kcp_.patch(runtime_bootstrappers_type(), key, k8s::patch_type::merge,
                                          std::move(change));
    if (done) {
      released_.Increment();
      environment_.log.info("deleted RuntimeBootstrapper released, its runtime is left as it is",
                            {{"namespace", key.ns}, {"name", key.name}});
    }
    const bool later =
        !done && (done.error().is(k8s::errc::conflict) || done.error().is(k8s::errc::not_found));
    if (!done && !later) co_return done.error();
  }
  co_return k8s::result<void>();
}

asio::awaitable<void> orphans::run() {
  const auto executor = co_await asio::this_coro::executor;
  const auto pause = environment_.clock.make_timer(executor);
  bool told = false;
  for (bool due = true; due;) {
    const auto done = co_await release_all();
    if (!done && done.error().is(k8s::errc::forbidden) && !std::exchange(told, true)) {
      environment_.log.warning(
          "deleted RuntimeBootstrappers can't be released in mode off",
          {{"error", done.error().message}, {"command", release_command("NAME")}});
    }
    pause->expires_at(environment_.clock.now() + interval_);
    due = co_await pause->wait();
  }
}

}  // namespace rw::bootstrapper
