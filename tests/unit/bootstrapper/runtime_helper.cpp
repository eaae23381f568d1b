#include "k8s/difference.hpp"
#include "k8s/kubeconfig.hpp"
#include "k8s/manifests.hpp"
#include "reactors/bootstrapper/runtime_store.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/runtime.hpp"
#include "tests/unit/run.hpp"
#include <cstdlib>
#include <utility>

namespace rw::bootstrapper_test {
namespace {

k8s::devserver::fault next_fault(write_faults& state, const std::string& verb,
                                 const std::string& path) {
  k8s::devserver::fault out;
  const bool stopped = state.stop_after >= 0 && state.seen >= state.stop_after;
  if (reads(verb)) {
    out.drop = stopped;
    return out;
  }
  if (stopped) {
    out.drop = true;
    return out;
  }
  if (path.find(state.only_path) == path.npos) return out;
  ++state.seen;
  state.paths.push_back(verb + " " + path);
  if (state.refuse == state.seen) out.status = 422;
  return out;
}

asio::awaitable<void> close(runtimes_world* world, core::task_group* tasks,
                            std::map<std::string, std::shared_ptr<k8s::client>>* clients) {
  for (auto& [name, api] : *clients) co_await api->close();
  world->server.drop_connections();
  tasks->cancel();
  co_await tasks->join();
}

/// Without what an apply can't be seen in.
bool holds(const json::value& desired, const json::value& live) {
  if (k8s::find_difference(desired, live)) return false;
  for (const auto* field : {"data", "type"}) {
    const auto* const wanted = k8s::find(desired, {field});
    const auto* const there = k8s::find(live, {field});
    if (wanted != nullptr && (there == nullptr || *wanted != *there)) return false;
  }
  return true;
}

}  // namespace

runtimes_world::runtimes_world() {
  tasks_.spawn(watchdog.run());
  tasks_.spawn(server.run());
}

runtimes_world::~runtimes_world() {
  test::run(context, close(this, &tasks_, &clients_));
}

std::shared_ptr<k8s::client> runtimes_world::api(const std::string& runtime) {
  auto& api = clients_[runtime];
  if (!api) {
    auto how_to = k8s::parse_kubeconfig(server.kubeconfig(runtime, "admin"), runtime, "");
    api = std::make_shared<k8s::client>(context.get_executor(), std::move(*how_to),
                                        k8s::client_options{.name = "test", .retries = 0},
                                        k8s::client_environment{clock, watchdog, log, numbers});
  }
  return api;
}

asio::awaitable<void> runtimes_world::add(std::string name, bool bare) {
  server.add_cluster(name);
  server.faults(name).decide = [this, name](const std::string& verb, const std::string& path) {
    return next_fault(faults[name], verb, path);
  };
  if (bare) co_return;
  json::value object{
      {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "kyma-system"}}}};
  const auto made = co_await api(name)->create(namespaces_type(), std::move(object));
  BOOST_REQUIRE_MESSAGE(made.has_value(), made.error().message);
  faults[name] = {};
}

asio::awaitable<void> runtimes_world::add_any() {
  const auto* const file = std::getenv("RW_CONFORMANCE_KUBECONFIG");
  if (file == nullptr && clients_.contains("skr")) {
    co_await clients_["skr"]->close();
    clients_.erase("skr");
    server.remove_cluster("skr");
  }
  if (file == nullptr) {
    co_await add("skr", true);
    co_return;
  }
  if (!clients_.contains("skr")) {
    auto real = k8s::load_kubeconfig({file});
    clients_["skr"] = std::make_shared<k8s::client>(
        context.get_executor(), std::move(*real), k8s::client_options{.name = "real"},
        k8s::client_environment{clock, watchdog, log, numbers});
  }
  const auto cleaned = co_await bootstrapper::undeploy(api("skr"), &how, subject, {},
                                                       std::chrono::system_clock::now());
  BOOST_REQUIRE_MESSAGE(cleaned.has_value(), cleaned.error().message);
}

asio::awaitable<k8s::result<bootstrapper::sync_report>> runtimes_world::sync(
    std::string runtime, bootstrapper::sync_request what) {
  auto report = co_await bootstrapper::sync(api(runtime), &how, std::move(what));
  co_return report;
}

asio::awaitable<bootstrapper::sync_report> runtimes_world::must_sync(
    std::string runtime, bootstrapper::sync_request what) {
  auto report = co_await bootstrapper::sync(api(runtime), &how, std::move(what));
  BOOST_REQUIRE_MESSAGE(report.has_value(), report.error().message);
  co_return std::move(*report);
}

asio::awaitable<bool> runtimes_world::has(std::string runtime, bootstrapper::known_set set,
                                          bootstrapper::known_set other) {
  const std::string ns = "kyma-system";
  for (const auto& one : set.items) {
    const auto got = co_await api(runtime)->get(one.type, one.key(ns));
    if (!got || !holds(one.written(ns), *got)) co_return false;
  }
  for (const auto& one : other.items) {
    if (set.find(one.type, one.key(ns), ns) != nullptr) continue;
    const auto got = co_await api(runtime)->get(one.type, one.key(ns));
    if (got || !got.error().is(k8s::errc::not_found)) co_return false;
  }
  co_return true;
}

asio::awaitable<json::value> runtimes_world::get(std::string runtime, std::string kind,
                                                 std::string name) {
  auto type = bundles;
  for (const auto* version : {"v1", "apps/v1", "admissionregistration.k8s.io/v1"}) {
    if (const auto known = k8s::well_known_type(version, kind)) type = *known;
  }
  const k8s::object_key key{type.namespaced ? "kyma-system" : "", name};
  auto got = co_await api(runtime)->get(type, key);
  co_return got ? std::move(*got) : json::value();
}

asio::awaitable<std::string> runtimes_world::phase(std::string runtime) {
  bootstrapper::writer with(api(runtime), "test", {});
  bootstrapper::runtime_store store(with, "kyma-system", how.record_key, subject);
  const auto record = co_await store.read();
  BOOST_REQUIRE(record.has_value());
  co_return *record ? std::string(to_string((**record).now)) : std::string("none");
}

bootstrapper::sync_request request_for(const bootstrapper::sources_of_set& from) {
  bootstrapper::sync_request out{.subject = subject, .now = std::chrono::system_clock::now()};
  bootstrapper::problems wrong;
  auto gathered = bootstrapper::gather(from, out.to, out.now, wrong);
  if (wrong.empty()) {
    out.wanted = std::move(gathered);
  } else {
    out.invalid = bootstrapper::describe(wrong);
  }
  return out;
}

bootstrapper::known_set set_of(const bootstrapper::sources_of_set& from) {
  const auto request = request_for(from);
  BOOST_REQUIRE_MESSAGE(request.wanted.has_value(), request.invalid);
  bootstrapper::known_set out{.digest = digest_of(request.wanted->objects)};
  for (const auto& one : request.wanted->objects) {
    const auto type = k8s::well_known_type(k8s::find_string(one.object, {"apiVersion"}),
                                           k8s::find_string(one.object, {"kind"}));
    out.items.push_back({one.from, one.object, type.value_or(bundles)});
  }
  return out;
}

}  // namespace rw::bootstrapper_test
