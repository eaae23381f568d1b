#include "rw/core/task_group.hpp"
#include "rw/reactors/events/admission.hpp"
#include "rw/reactors/events/dispatch.hpp"
#include "rw/reactors/events/observation.hpp"
#include "rw/reactors/intake/listener.hpp"
#include "rw/tls/transport.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/events/review_text.hpp"
#include "tests/unit/run.hpp"
#include "tests/unit/tls/pki.hpp"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

BOOST_AUTO_TEST_SUITE(pipeline)

// The whole way of an event in one process: reviews over TLS to the webhook, the channel, dispatch,
// mutual TLS to the listener, and its channel.

namespace asio = boost::asio;
namespace core = rw::core;
namespace http = rw::http;
namespace tls = rw::tls;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;
using rw::listener::received_event;
using tls::test::good;
using tls::test::holding;

namespace {

struct certificates {
  tls::issuer ca = good(tls::issuer::create({.common_name = "pipeline CA"}));
  // One certificate with two roles, as on a runtime.
  tls::key_pair runtime = good(ca.issue({.common_name = "runtime-1",
                                         .dns_names = {"localhost"},
                                         .server_auth = true,
                                         .client_auth = true}));
  tls::key_pair kcp =
      good(ca.issue({.common_name = "kcp", .dns_names = {"localhost"}, .server_auth = true}));
};

const certificates& certs() {
  static const certificates made;
  return made;
}

/// When the last change of each object began, and when each was last heard of.
class ledger {
 public:
  void change(const std::string& object) {
    const std::lock_guard lock(guard_);
    last_change_[object] = steady::now();
  }
  void heard_of(const std::string& object) {
    const std::lock_guard lock(guard_);
    last_heard_[object] = steady::now();
  }
  bool heard_since(const std::string& object, steady::time_point when) const {
    const std::lock_guard lock(guard_);
    const auto heard = last_heard_.find(object);
    return heard != last_heard_.end() && heard->second >= when;
  }
  std::size_t objects() const {
    const std::lock_guard lock(guard_);
    return last_change_.size();
  }
  /// Objects of whose last change nothing was heard.
  std::size_t missing() const {
    const std::lock_guard lock(guard_);
    std::size_t count = 0;
    for (const auto& [object, changed] : last_change_) {
      const auto heard = last_heard_.find(object);
      count += heard == last_heard_.end() || heard->second < changed ? 1 : 0;
    }
    return count;
  }

 private:
  mutable std::mutex guard_;
  std::map<std::string, steady::time_point> last_change_;
  std::map<std::string, steady::time_point> last_heard_;
};

std::string review(const std::string& object) {
  review_text text;
  text.operation = R"("CREATE")";
  text.old_object = {};
  text.name = '"' + object + '"';
  text.object = review_text::watched(R"({"size":1})", {},
                                     R"({"name":")" + object + R"(","namespace":"kyma-system"})");
  return text.text();
}

/// Both ends of the way, on an io_context that `threads` threads run.
class system_under_test {
 public:
  explicit system_under_test(int threads, std::size_t queue = 1024) : events(queue) {
    dispatching.spawn(dispatcher.run());
    dispatching.spawn(observation.run());
    intake.spawn(webhook_server.run());
    listening.spawn(registered.runnable->run());
    background.spawn(dog.run());
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { context.run(); });
    }
  }

  ~system_under_test() {
    for (auto* group : {&intake, &dispatching, &listening, &background}) group->cancel();
    for (auto* group : {&intake, &dispatching, &listening, &background}) wait(*group);
    work.reset();
  }

  asio::any_io_executor strand() { return asio::make_strand(context); }

  /// Runs a coroutine from this thread.
  void wait(asio::any_io_executor on, asio::awaitable<void> task) {
    auto done = asio::co_spawn(on, std::move(task), asio::use_future);
    if (done.wait_for(rw::test::patience) != std::future_status::ready) {
      std::fputs("the pipeline does not come to an end\n", stderr);
      std::abort();  // its threads hold on to what would be destroyed now
    }
    done.get();
  }
  void wait(core::task_group& group) { wait(group.get_executor(), group.join()); }

  /// Ends the intake, then delivers what was accepted, then ends the listener.
  void stop() {
    webhook_server.drain();
    wait(intake);
    events.close();
    wait(dispatching);
    registered.runnable->drain();
    wait(listening);
  }

  asio::io_context context;
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  core::real_clock time;
  asio::any_io_executor main = strand();
  core::watchdog dog{time, main, 20ms};
  core::metrics metrics;
  core::logger log{core::log_level::error, [](std::string_view) {}};
  core::channel<rw::watch_event> events;

  std::unique_ptr<core::transport> server_tls =
      good(tls::make_server_transport(holding(certs().runtime, certs().ca.certificate_pem())));
  std::unique_ptr<core::transport> upstream_tls = good(tls::make_client_transport(
      holding(certs().runtime, certs().ca.certificate_pem()), {.server_name = "localhost"}));
  std::unique_ptr<core::transport> api_server_tls = good(tls::make_client_transport(
      tls::test::trusting(certs().ca.certificate_pem()), {.server_name = "localhost"}));

  asio::any_io_executor listener_strand = strand();
  rw::listener::registration registered = rw::listener::register_component(
      listener_strand, listener_options(), {time, dog, log, metrics});

  asio::any_io_executor dispatch_strand = strand();
  rw::dispatch::delivery objects{{}};
  rw::dispatch::dispatcher dispatcher{
      dispatch_strand,
      dispatch_options(),
      {time, dog, *upstream_tls, log, metrics, core::make_random_source(), objects}};
  rw::observation::observation observation{
      dispatch_strand,
      reviews_alone(),
      events,
      {time, log, metrics, core::make_random_source(), dispatcher, objects}};

  rw::admission::webhook webhook{{}, events, time, log, metrics};
  asio::any_io_executor intake_strand = strand();
  http::server webhook_server{intake_strand,
                              {"webhook", {asio::ip::address_v4::loopback(), 0}, {}},
                              webhook,
                              {*server_tls, dog, log, metrics},
                              [this] { return strand(); }};

  core::task_group background{main};
  core::task_group intake{intake_strand};
  core::task_group dispatching{dispatch_strand};
  core::task_group listening{listener_strand};

 private:
  static rw::listener::listener_options listener_options() {
    rw::listener::listener_options options;
    options.address = {asio::ip::address_v4::loopback(), 0};
    options.component = "lifecycle-manager";
    options.tls = holding(certs().kcp, certs().ca.certificate_pem());
    return options;
  }

  static rw::observation::observation_options reviews_alone() {
    rw::observation::observation_options options;
    options.observer.settle = {};
    options.watches = false;
    return options;
  }

  rw::dispatch::dispatch_options dispatch_options() const {
    rw::dispatch::dispatch_options options;
    options.upstream.name = "kcp";
    options.upstream.host = "127.0.0.1";
    options.upstream.port = registered.runnable->address().port();
    options.schedule.retry_base = 1ms;
    options.schedule.probe_limit = 10ms;
    return options;
  }

  std::vector<std::jthread> threads_;
};

/// An API server's connection: its exchanges on one strand.
class api_server {
 public:
  api_server(system_under_test& at, ledger& book, std::string name)
      : strand_(at.strand()),
        client_(strand_, options(at.webhook_server.address().port()),
                {*at.api_server_tls, at.dog, at.log, at.metrics}),
        book_(book),
        name_(std::move(name)) {}

  const asio::any_io_executor& executor() const { return strand_; }
  int accepted() const { return accepted_; }

  /// Posts reviews with several writers at once, each with its own objects.
  asio::awaitable<void> post(int writers, int objects, int changes) {
    core::task_group group(strand_);
    for (int i = 0; i < writers; ++i) {
      group.spawn(write(name_ + "-" + std::to_string(i), objects, changes));
    }
    co_await group.join();
    co_await client_.close();
  }

 private:
  static http::client_options options(std::uint16_t port) {
    http::client_options o;
    o.name = "api-server";
    o.host = "127.0.0.1";
    o.port = port;
    return o;
  }

  asio::awaitable<void> write(std::string prefix, int objects, int changes) {
    http::request request;
    http::response response;
    for (int i = 0; i < changes; ++i) {
      const auto object = prefix + "-" + std::to_string(i % objects);
      request.clear();
      response.clear();
      request.method = "POST";
      request.target = "/validate/lifecycle-manager";
      request.headers.add("content-type", "application/json");
      request.body = review(object);
      http::client_slot slot;
      auto error = co_await client_.acquire(slot);
      if (!error) {
        book_.change(object);
        error = co_await slot.exchange(request, response);
      }
      const bool allowed = response.body.find(R"("allowed":true)") != std::string::npos &&
                           response.body.find("warnings") == std::string::npos;
      if (!error && response.status == 200 && allowed) ++accepted_;
    }
  }

  asio::any_io_executor strand_;
  http::client client_;
  ledger& book_;
  const std::string name_;
  int accepted_ = 0;
};

/// Takes events until the channel ends.
asio::awaitable<void> read_all(std::shared_ptr<core::channel<received_event>> from, ledger* book,
                               std::atomic<int>* wrong) {
  for (;;) {
    const auto one = co_await from->receive();
    if (one.has_error()) co_return;
    const bool right = one->runtime_id == "runtime-1" &&
                       one->event.manager == "lifecycle-manager" && one->event.gvk.kind == "Kyma" &&
                       one->event.watched.ns == "kyma-system";
    if (!right) ++*wrong;
    book->heard_of(one->event.watched.name);
  }
}

struct load {
  int threads;
  int api_servers;
  int writers;
  int objects;
  int changes;
};

/// Posts all reviews, waits for the answers, and stops; returns how many were accepted.
int post_and_stop(system_under_test& system, ledger& book, const load& what) {
  std::vector<std::unique_ptr<api_server>> api_servers;
  std::vector<std::future<void>> done;
  for (int i = 0; i < what.api_servers; ++i) {
    api_servers.push_back(std::make_unique<api_server>(system, book, "api-" + std::to_string(i)));
    auto& one = *api_servers.back();
    done.push_back(asio::co_spawn(
        one.executor(), one.post(what.writers, what.objects, what.changes), asio::use_future));
  }
  int accepted = 0;
  for (std::size_t i = 0; i < done.size(); ++i) {
    BOOST_TEST_REQUIRE((done[i].wait_for(rw::test::patience) == std::future_status::ready));
    done[i].get();
    accepted += api_servers[i]->accepted();
  }
  system.stop();
  return accepted;
}

void deliver_everything(const load& what) {
  ledger book;
  std::atomic<int> wrong = 0;
  system_under_test system(what.threads);
  core::task_group readers(system.main);
  readers.spawn(system.strand(), read_all(system.registered.events, &book, &wrong));
  const int accepted = post_and_stop(system, book, what);
  system.wait(readers);
  BOOST_TEST(accepted == what.api_servers * what.writers * what.changes);
  BOOST_TEST(book.objects() ==
             static_cast<std::size_t>(what.api_servers * what.writers * what.objects));
  BOOST_TEST(book.missing() == 0U);
  BOOST_TEST(wrong.load() == 0);
  BOOST_TEST(system.dispatcher.pending() == 0U);
  BOOST_TEST(system.events.size() == 0U);
}

}  // namespace

BOOST_AUTO_TEST_CASE(on_one_thread_every_accepted_change_is_delivered) {
  deliver_everything({.threads = 1, .api_servers = 2, .writers = 4, .objects = 20, .changes = 60});
}

BOOST_AUTO_TEST_CASE(on_three_threads_with_strands_every_accepted_change_is_delivered) {
  deliver_everything({.threads = 3, .api_servers = 4, .writers = 4, .objects = 20, .changes = 60});
}

BOOST_AUTO_TEST_CASE(host_threads_outside_the_io_context_take_the_events) {
  ledger book;
  system_under_test system(2);
  const auto events = system.registered.events;
  std::atomic<int> taken = 0;
  std::vector<std::jthread> hosts;
  for (int i = 0; i < 2; ++i) {
    hosts.emplace_back([&, events] {
      for (;;) {
        std::promise<std::optional<received_event>> received;
        events->async_receive([&](boost::system::error_code, std::optional<received_event> one) {
          received.set_value(std::move(one));
        });
        const auto one = received.get_future().get();
        if (!one) return;  // the channel is closed, and empty
        book.heard_of(one->event.watched.name);
        ++taken;
      }
    });
  }
  const int accepted = post_and_stop(
      system, book, {.threads = 2, .api_servers = 2, .writers = 4, .objects = 10, .changes = 40});
  hosts.clear();
  BOOST_TEST(accepted == 320);
  BOOST_TEST(book.missing() == 0U);
  BOOST_TEST(taken.load() >= 80);
}

BOOST_AUTO_TEST_CASE(host_threads_put_events_in_and_none_is_lost) {
  ledger book;
  std::atomic<int> wrong = 0;
  system_under_test system(2, 64);
  core::task_group readers(system.main);
  readers.spawn(system.strand(), read_all(system.registered.events, &book, &wrong));
  {
    std::vector<std::jthread> hosts;
    for (int h = 0; h < 2; ++h) {
      hosts.emplace_back([&, h] {
        for (int i = 0; i < 500; ++i) {
          const auto object = "host-" + std::to_string(h) + "-" + std::to_string(i % 50);
          book.change(object);
          rw::watch_event event{.manager = "lifecycle-manager",
                                .gvk = {"operator.kyma-project.io", "v1beta2", "Kyma"},
                                .watched = {"kyma-system", object}};
          std::promise<bool> sent;
          system.events.async_send(
              std::move(event), [&](boost::system::error_code error) { sent.set_value(!error); });
          if (!sent.get_future().get()) ++wrong;
        }
      });
    }
  }
  system.stop();
  system.wait(readers);
  BOOST_TEST(book.objects() == 100U);
  BOOST_TEST(book.missing() == 0U);
  BOOST_TEST(wrong.load() == 0);
}

BOOST_AUTO_TEST_CASE(stopped_under_load_it_delivers_what_it_accepted) {
  ledger book;
  std::atomic<int> wrong = 0;
  system_under_test system(3);
  core::task_group readers(system.main);
  readers.spawn(system.strand(), read_all(system.registered.events, &book, &wrong));

  // Changes that are accepted, by object: those that fail because of the stop do not count.
  std::mutex guard;
  std::map<std::string, steady::time_point> accepted;
  std::atomic<int> posted = 0;
  std::atomic<bool> stopping = false;
  const auto strand = system.strand();
  http::client_options to;
  to.name = "api-server";
  to.host = "127.0.0.1";
  to.port = system.webhook_server.address().port();
  http::client client(strand, to, {*system.api_server_tls, system.dog, system.log, system.metrics});
  const auto write = [&](int id) -> asio::awaitable<void> {
    http::request request;
    http::response response;
    for (int i = 0; !stopping; ++i) {
      const auto object = "w" + std::to_string(id) + "-" + std::to_string(i % 10);
      request.clear();
      response.clear();
      request.method = "POST";
      request.target = "/validate/lifecycle-manager";
      request.body = review(object);
      http::client_slot slot;
      auto error = co_await client.acquire(slot);
      if (error) co_return;
      const auto begin = steady::now();
      error = co_await slot.exchange(request, response);
      if (error || response.status != 200) continue;
      ++posted;
      const std::lock_guard lock(guard);
      accepted[object] = begin;
    }
  };
  core::task_group writers(strand);
  for (int id = 0; id < 8; ++id) writers.spawn(write(id));
  const auto end = steady::now() + rw::test::patience;
  while (posted < 300 && steady::now() < end) std::this_thread::yield();
  BOOST_TEST(posted >= 300);
  system.webhook_server.drain();
  system.wait(system.intake);
  stopping = true;
  system.wait(strand, writers.join());
  system.wait(strand, client.close());
  system.stop();
  system.wait(readers);
  for (const auto& [object, begin] : accepted) BOOST_TEST(book.heard_since(object, begin), object);
  BOOST_TEST(wrong.load() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
