// Gives every namespace with the label `team` a ConfigMap `team`, and repairs that.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <iostream>
#include <rw/core/task_group.hpp>
#include <rw/k8s/cache/informer.hpp>
#include <rw/k8s/client/client.hpp>
#include <rw/k8s/controller/controller.hpp>
#include <rw/k8s/objects/types.hpp>

namespace asio = boost::asio;
namespace core = rw::core;
namespace k8s = rw::k8s;

const k8s::resource_type namespaces{{"", "v1", "Namespace"}, "namespaces", false};
const k8s::resource_type config_maps{{"", "v1", "ConfigMap"}, "configmaps"};

struct team_reconciler final : k8s::reconciler {
  k8s::client& api;
  k8s::informer &teams, &maps;
  team_reconciler(k8s::client& a, k8s::informer& t, k8s::informer& m) : api(a), teams(t), maps(m) {}

  asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key key) override {
    const auto found = teams.objects().get(key).parse();  // null if the namespace is gone
    if (found.is_null() || k8s::is_being_deleted(found)) co_return k8s::reconcile_result::done();
    const std::string team(k8s::label(found, "team"));
    const auto live = maps.objects().get(key.name, "team").parse();
    if (k8s::find_string(live, {"data", "team"}) == team) co_return k8s::reconcile_result::done();
    boost::json::value desired = {{"apiVersion", "v1"},
                                  {"kind", "ConfigMap"},
                                  {"metadata", {{"namespace", key.name}, {"name", "team"}}},
                                  {"data", {{"team", team}}}};
    const auto applied = co_await api.apply(config_maps, std::move(desired), {.force = true});
    if (applied.has_error()) co_return k8s::reconcile_result::error(applied.error());  // backoff
    co_return k8s::reconcile_result::done();
  }
};

asio::awaitable<void> end(core::task_group* tasks, k8s::client* api) {
  co_await tasks->join();
  co_await api->close();
}

int main() {
  asio::io_context context;
  core::real_clock clock;
  core::logger log;
  core::metrics metrics;
  auto config = k8s::load_config();  // $KUBECONFIG, the pod's service account, or ~/.kube/config
  if (config.has_error()) return std::cerr << config.error().message << '\n', 2;
  k8s::client api(context.get_executor(), *config,
                  {.user_agent = "team-maps/1.0", .field_manager = "team-maps"},
                  {.clock = clock, .log = log, .metrics = metrics});
  k8s::informer teams(api, namespaces, {.what = {.labels = "team"}},
                      {clock, log, metrics, core::make_random_source()});
  k8s::informer maps(api, config_maps, {.what = {.fields = "metadata.name=team"}},
                     {clock, log, metrics, core::make_random_source()});
  team_reconciler reconciler(api, teams, maps);
  k8s::controller controller(
      context.get_executor(), {.name = "team"}, reconciler,
      {.clock = clock, .log = log, .metrics = metrics, .random = core::make_random_source()});
  controller.watch(teams);
  controller.watch(maps, [](const k8s::delta& change, k8s::controller::keys& keys) {
    keys.push_back({"", std::string(change.any().ns())});
  });
  core::task_group tasks(context.get_executor());
  for (auto* each : {&teams, &maps}) tasks.spawn(each->run());
  tasks.spawn(controller.run());
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&tasks](boost::system::error_code, int) { tasks.cancel(); });
  asio::co_spawn(context, end(&tasks, &api), [&signals](std::exception_ptr failure) {
    signals.cancel();
    if (failure) std::rethrow_exception(failure);
  });
  context.run();
}
