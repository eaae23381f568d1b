#include "api_server.hpp"
#include <rw/core/wake.hpp>
#include <rw/k8s/client/object_api.hpp>
#include <rw/k8s/controller/controller.hpp>
#include <rw/k8s/controller/event_recorder.hpp>
#include <rw/k8s/controller/event_sink.hpp>
#include <rw/k8s/controller/leader_election.hpp>
#include <rw/k8s/controller/operator_host.hpp>
#include <rw/k8s/controller/operator_request.hpp>
#include <rw/k8s/controller/reconciler.hpp>

namespace core = rw::core;
namespace k8s = rw::k8s;

struct widget {
  k8s::object_meta metadata;
  static inline const k8s::resource_type type{{"example.com", "v1", "Widget"}, "widgets"};
};
BOOST_DESCRIBE_STRUCT(widget, (), (metadata))

namespace {

asio::awaitable<k8s::reconcile_result> reconcile(k8s::operator_request<widget> of) {
  EXPECT(!of.key().name.empty());
  co_return k8s::reconcile_result::done();
}

struct once final : k8s::reconciler {
  explicit once(asio::any_io_executor executor) : called(executor) {}
  asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key) override {
    called.set();
    co_return k8s::reconcile_result::done();
  }
  core::wake called;
};

asio::awaitable<void> leads(api_server* on) {
  const auto executor = on->api.get_executor();
  once reconciler(executor);
  k8s::controller controller(
      executor, {.name = "host"}, reconciler,
      {on->clock, on->watchdog, on->log, on->metrics, core::make_random_source()});
  k8s::fence fence(on->clock);
  auto random = core::make_random_source();
  k8s::election_options options{
      .ns = "default", .name = "host", .identity = k8s::make_election_identity(random)};
  std::vector<k8s::leader_elector::reactor> reactors{[&controller] { return controller.run(); }};
  k8s::leader_elector elector(executor, k8s::objects_of(on->api), options, std::move(reactors),
                              fence, {on->clock, on->log, on->metrics, random});
  k8s::event_recorder recorder(executor, k8s::objects_of(on->api),
                               {.component = "host", .instance = "1"},
                               {on->clock, on->log, on->metrics, random});
  const auto is_dry = std::make_shared<bool>(true);
  k8s::quiet_events events(recorder, is_dry);
  events.normal({.kind = "Lease", .ns = "default", .name = "host"}, "Leads", "The host leads");
  auto writing = on->api.fenced({std::shared_ptr<void>(), &fence}).dry(is_dry);
  EXPECT(writing.is_dry() && writing.shares_connections_with(on->api));
  controller.add({"default", "object"});
  core::task_group tasks(executor);
  tasks.spawn(elector.run());
  tasks.spawn(recorder.run());
  const auto error = co_await reconciler.called.wait();
  EXPECT(!error && elector.leading() && fence.open());
  tasks.cancel();
  co_await tasks.join();
}

}  // namespace

void use_kubernetes_controller() {
  api_server server;
  server.run(leads(&server));
  k8s::operator_host host({.name = "widgets"});
  host.watch<widget>().run(reconcile);
  EXPECT(host.definitions().size() == 1);
}
