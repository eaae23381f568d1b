#pragma once

#include "core/task_group.hpp"
#include "core/watchdog.hpp"
#include "k8s/client.hpp"
#include "k8s/devserver/server.hpp"
#include "k8s/devserver/yaml.hpp"
#include "k8s/event_recorder.hpp"
#include "k8s/informer.hpp"
#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::gateway_secret::test {

/// A control plane's API server, embedded, with clients and informers, on a clock that the test
/// moves; all on the test's own thread.
class cluster {
 public:
  using value = boost::json::value;

  cluster() {
    server.add_cluster("kcp");
    tasks.spawn(watchdog.run());
    tasks.spawn(server.run());
    api = connect("reactor");
    own = connect("test");
    create(namespaces_type(), named("", "istio-system", "v1", "Namespace"));
  }
  ~cluster() { stop(); }
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;

  std::unique_ptr<k8s::client> connect(const std::string& name) {
    auto how = k8s::parse_kubeconfig(server.kubeconfig("kcp", name), name, "");
    BOOST_REQUIRE_MESSAGE(how.has_value(), how.error().message);
    return std::make_unique<k8s::client>(io.get_executor(), std::move(*how),
                                         k8s::client_options{.name = name},
                                         k8s::client_environment{clock, watchdog, log, metrics});
  }

  std::unique_ptr<k8s::informer> inform(const k8s::resource_type& type,
                                        k8s::informer_options options) {
    options.streaming_list = false;
    auto made = std::make_unique<k8s::informer>(
        *api, type, std::move(options),
        k8s::informer_environment{clock, log, metrics, [] { return std::uint64_t{0}; }});
    tasks.spawn(made->run());
    return made;
  }

  /// A CustomResourceDefinition of deploy/dev.
  void define(const std::string& file) {
    std::ifstream in(std::string(RW_SOURCE_DIR) + "/deploy/dev/" + file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    std::string why;
    auto parsed = k8s::devserver::parse_yaml(text, why);
    BOOST_REQUIRE_MESSAGE(parsed, file << ": " << why);
    static const k8s::resource_type definitions{
        {"apiextensions.k8s.io", "v1", "CustomResourceDefinition"},
        "customresourcedefinitions",
        false};
    create(definitions, std::move(*parsed));
  }

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
    return ok(own->create(type, std::move(object)));
  }
  value update(const k8s::resource_type& type, value object) {
    return ok(own->update(type, std::move(object)));
  }
  value put(const k8s::resource_type& type, value object) {
    return ok(own->apply(type, std::move(object), {.field_manager = "test", .force = true}));
  }
  void remove(const k8s::resource_type& type, const std::string& name) {
    ok(own->remove(type, {"istio-system", name}));
  }
  value get(const k8s::resource_type& type, const std::string& name) {
    return ok(own->get(type, {"istio-system", name}));
  }
  /// None if it is not there.
  std::optional<value> find(const k8s::resource_type& type, const std::string& name) {
    auto got = call(own->get(type, {"istio-system", name}));
    if (!got) return std::nullopt;
    return std::move(*got);
  }

  template <class T>
  T ok(boost::asio::awaitable<k8s::result<T>> request) {
    auto got = call(std::move(request));
    BOOST_REQUIRE_MESSAGE(got.has_value(), (got.has_value() ? "" : got.error().message));
    return std::move(*got);
  }

  /// Runs until `work` has ended; time passes where it has to wait.
  template <class T>
  T call(boost::asio::awaitable<T> work) {
    std::optional<T> outcome;
    std::exception_ptr failure;
    bool done = false;
    boost::asio::co_spawn(io, std::move(work), [&](std::exception_ptr thrown, T got) {
      failure = std::move(thrown);
      if (!failure) outcome.emplace(std::move(got));
      done = true;
    });
    until([&] { return done; }, "a request to end");
    if (failure) std::rethrow_exception(failure);
    return std::move(*outcome);
  }

  /// Lets a little time pass until the condition holds.
  void until(const std::function<bool()>& condition, std::string_view what) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    settle();
    while (!condition() && std::chrono::steady_clock::now() < patience) {
      pass(std::chrono::milliseconds(20));
    }
    BOOST_REQUIRE_MESSAGE(condition(), "did not come: " << what);
  }

  /// Lets time pass, alarm by alarm.
  void pass(core::duration by) {
    const auto end = clock.now() + by;
    for (;;) {
      settle();
      const auto next = std::min(clock.next_alarm(), end);
      clock.advance(std::max(next - clock.now(), core::duration::zero()));
      if (next == end) break;
    }
    settle();
  }

  /// Lets everything happen that can without time passing.
  void settle() {
    io.restart();
    for (int quiet = 0; quiet < 3;) quiet = io.poll() > 0 ? 0 : quiet + 1;
  }

  /// Ends everything that was spawned; informers may go then.
  void stop() {
    if (stopped_) return;
    stopped_ = true;
    tasks.cancel();
    bool done = false;
    boost::asio::co_spawn(io, end(), [&](std::exception_ptr) { done = true; });
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done && std::chrono::steady_clock::now() < patience) {
      settle();
      clock.advance(std::chrono::milliseconds(100));
    }
    BOOST_TEST(done, "everything ends");
  }

  double metric(const std::string& series) const {
    const auto text = core::expose(metrics);
    const auto line = '\n' + series + ' ';
    const auto at = text.find(line);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + line.size()));
  }
  long lines(std::string_view with) const {
    return std::ranges::count_if(
        logged, [&](const std::string& line) { return line.find(with) != std::string::npos; });
  }

  boost::asio::io_context io{1};
  core::manual_clock clock;
  core::metrics metrics;
  std::vector<std::string> logged;
  core::logger log{core::log_level::info,
                   [this](std::string_view line) { logged.emplace_back(line); }};
  core::watchdog watchdog{clock, io.get_executor(), std::chrono::seconds(1)};
  k8s::devserver::server server{io.get_executor(), {}, {clock, watchdog, log, metrics}};
  core::task_group tasks{io.get_executor()};
  std::unique_ptr<k8s::client> api;
  std::unique_ptr<k8s::client> own;

 private:
  boost::asio::awaitable<void> end() {
    co_await api->close();
    co_await own->close();
    co_await tasks.join();
  }

  bool stopped_ = false;
};

}  // namespace rw::gateway_secret::test
