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
asio::awaitable<k8s::result<bool>> orphans::may(std::string verb) {
  const auto& type = runtime_bootstrappers_type();
  access_right right{.verb = std::move(verb),
                     .group = type.gvk.group,
                     .resource = type.plural,
                     .ns = std::string(kcp_namespace)};
  return has_right(kcp_, std::move(right));
}

asio::awaitable<k8s::result<void>> orphans::release_all() {
  const auto lists = co_await may("list");
  if (!lists) co_return lists.error();
  if (!*lists) co_return k8s::result<void>();
  k8s::selection all{.ns = std::string(kcp_namespace), .metadata_only = true};
  const auto list = co_await kcp_.list(runtime_bootstrappers_type(), std::move(all));
  if (!list && list.error().is(k8s::errc::not_found)) co_return k8s::result<void>();
  if (!list) co_return list.error();
  const auto* const items = k8s::find_array(*list, {"items"});
  bool patches = false;
  for (const auto& each : items == nullptr ? json::array() : *items) {
    if (!k8s::is_being_deleted(each) || !k8s::has_finalizer(each, finalizer)) continue;
    if (!patches) {
      const auto allowed = co_await may("patch");
      if (!allowed) co_return allowed.error();
      patches = *allowed;
    }
    const auto key = k8s::key_of(each);
    if (!patches) {
      tell(key.name);
      co_return k8s::result<void>();
    }
    auto rest = each;
    k8s::remove_finalizer(rest, finalizer);
    const auto* const left = k8s::find(rest, {"metadata", "finalizers"});
    json::object metadata{{"resourceVersion", k8s::resource_version_of(each)},
                          {"finalizers", left == nullptr ? json::value() : *left}};
    json::value change{{"metadata", std::move(metadata)}};
    const auto done = co_await kcp_.patch(runtime_bootstrappers_type(), key, k8s::patch_type::merge,
                                          std::move(change));
    if (done) {
      released_.Increment();
      environment_.log.info("deleted RuntimeBootstrapper released, its runtime is left as it is",
                            {{"namespace", key.ns}, {"name", key.name}});
    }
    if (!done && done.error().is(k8s::errc::forbidden)) tell(key.name);
    const bool later =
        !done && (done.error().is(k8s::errc::conflict) || done.error().is(k8s::errc::not_found));
    if (!done && !later) co_return done.error();
  }
  co_return k8s::result<void>();
}

void orphans::tell(const std::string& name) {
  if (std::exchange(told_, true)) return;
  const auto& type = runtime_bootstrappers_type();
  environment_.log.warning(
      "deleted RuntimeBootstrappers can't be released in mode off",
      {{"name", name},
       {"error", "the manager may not " + text_of({.verb = "patch",
                                                   .group = type.gvk.group,
                                                   .resource = type.plural,
                                                   .ns = std::string(kcp_namespace)})},
       {"command", release_command(name)}});
}

asio::awaitable<void> orphans::run() {
  const auto executor = co_await asio::this_coro::executor;
  const auto pause = environment_.clock.make_timer(executor);
  for (bool due = true; due;) {
    co_await release_all();
    pause->expires_at(environment_.clock.now() + interval_);
    due = co_await pause->wait();
  }
}

}  // namespace rw::bootstrapper
