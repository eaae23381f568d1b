#pragma once

#include "rw/core/channel.hpp"
#include "rw/core/http/server.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/reactors/events/dispatch.hpp"
#include "rw/reactors/shared/resync.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rw::dispatch::test {

namespace asio = boost::asio;
using namespace std::chrono_literals;

inline watch_event event(const std::string& name, const std::string& manager = "m") {
  return {.manager = manager, .gvk = {"g", "v1", "Kind"}, .watched = {"ns", name}};
}

/// The value of a time series as it is exposed; 0 if there is none.
inline double value(const core::metrics& registry, const std::string& series) {
  const auto text = "\n" + core::expose(registry);
  const auto at = text.find("\n" + series + " ");
  return at == std::string::npos ? 0 : std::stod(text.substr(at + series.size() + 2));
}

/// KCP as a script: what it gets, and what it answers.
class upstream final : public http::handler {
 public:
  struct request {
    std::string target;
    std::string body;
  };

  explicit upstream(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  std::size_t body_limit(const http::request&) const override { return 1 << 20; }

  asio::awaitable<void> handle(http::request& from, http::response& into) override {
    const auto reason = from.headers.get(resync_header);
    if (takes_resyncs && !reason.empty()) {
      resyncs.emplace_back(reason);
      into.headers.add(resync_header, resync_taken);
      return {};
    }
    got.push_back({from.target, from.body});
    if (hang || (hangs_on && hangs_on(from))) return wait();
    if (script) script(from, into);
    return {};
  }

  /// How often the object of that name was in a request.
  std::size_t times(const std::string& name) const {
    const auto needle = "\"Name\":\"" + name + "\"";
    return static_cast<std::size_t>(std::ranges::count_if(
        got, [&](const request& r) { return r.body.find(needle) != std::string::npos; }));
  }

  /// Gives all answers that hang, and hangs no more.
  void resume() {
    hang = false;
    hangs_on = {};
    for (const auto& one : std::exchange(waiting_, {})) one->set();
  }

  std::function<void(const http::request&, http::response&)> script;
  std::vector<request> got;
  bool takes_resyncs = true;         ///< false: they are requests like others
  std::vector<std::string> resyncs;  ///< reasons of those that were taken
  bool hang = false;                 ///< answers nothing more
  std::function<bool(const http::request&)> hangs_on;

 private:
  asio::awaitable<void> wait() {
    waiting_.push_back(std::make_shared<core::wake>(executor_));
    const auto mine = waiting_.back();
    co_await mine->wait();
  }

  const asio::any_io_executor executor_;
  std::vector<std::shared_ptr<core::wake>> waiting_;
};

/// A dispatcher with what it needs, and an upstream over plain HTTP/1.1, on one thread.
struct world {
  asio::io_context context;
  core::real_clock time;
  core::watchdog dog{time, context.get_executor(), 5ms};
  core::metrics metrics;
  core::logger log{core::log_level::error, [](std::string_view) {}};
  std::unique_ptr<core::transport> plain = core::make_plain_transport();
  upstream kcp{context.get_executor()};
  std::unique_ptr<http::server> server;
  std::uint16_t port = 0;
  std::unique_ptr<core::channel<watch_event>> events =
      std::make_unique<core::channel<watch_event>>(1024);
  dispatch_options options = quick();
  core::random_source random = core::make_random_source();
  delivery objects{{}};
  std::unique_ptr<dispatcher> under_test;
  core::task_group serving{context.get_executor()};
  core::task_group dispatching{context.get_executor()};

  world() { open(); }

  static dispatch_options quick() {
    dispatch_options o;
    o.upstream.name = "kcp";
    o.upstream.host = "127.0.0.1";
    o.upstream.limits.connect = 2s;
    o.upstream.limits.exchange = 2s;
    o.schedule.retry_base = 1ms;
    o.schedule.retry_limit = 5ms;
    o.schedule.probe_limit = 5ms;
    return o;
  }

  /// Binds the upstream, to the same port each time.
  void open() {
    http::server_options at;
    at.name = "kcp";
    at.address = {asio::ip::address_v4::loopback(), port};
    server = std::make_unique<http::server>(context.get_executor(), at, kcp,
                                            http::server_environment{*plain, dog, log, metrics});
    port = server->address().port();
  }

  void dispatch() { dispatch_over(*plain, port); }

  void dispatch_over(core::transport& transport, std::uint16_t to) {
    options.upstream.port = to;
    under_test = std::make_unique<dispatcher>(
        context.get_executor(), options,
        dispatch_environment{time, dog, transport, log, metrics, random, objects});
    dispatching.spawn(under_test->run());
    dispatching.spawn(read_events());
  }

  /// As observation does where no watch is.
  asio::awaitable<void> read_events() {
    std::vector<watch_event> taken;
    for (;;) {
      taken.clear();
      const auto got = co_await events->receive_some(taken, 512);
      if (got.has_error()) break;
      for (auto& each : taken) under_test->offer(std::move(each));
      under_test->pump();
    }
    under_test->close();
  }

  void send(const std::string& name, const std::string& manager = "m") {
    const auto sent = events->try_send(event(name, manager));
    BOOST_TEST((sent == core::send_status::sent));
  }

  double outcome(const std::string& which) const {
    return value(metrics, "rw_dispatch_events_total{outcome=\"" + which + "\"}");
  }

  asio::awaitable<void> until(std::function<bool()> condition) {
    const bool came = co_await rw::test::eventually(std::move(condition));
    BOOST_TEST(came);
  }

  /// Until so many events have had that outcome.
  asio::awaitable<void> until_outcome(const char* which, double events_in_all) {
    co_await until([=, this] { return outcome(which) >= events_in_all; });
    BOOST_TEST(outcome(which) == events_in_all);
  }

  /// Closes the channel and waits for the dispatcher's own end.
  asio::awaitable<void> finish() {
    events->close();
    co_await until([this] { return dispatching.size() == 0; });
  }

  /// Runs `body` beside the watchdog and the upstream, then ends everything.
  void run(std::function<asio::awaitable<void>()> body) {
    rw::test::run(context, around(std::move(body)));
  }

  asio::awaitable<void> around(std::function<asio::awaitable<void>()> body) {
    core::task_group background(context.get_executor());
    background.spawn(dog.run());
    serving.spawn(server->run());
    std::exception_ptr failure;
    try {
      co_await body();
    } catch (...) {
      failure = std::current_exception();
    }
    dispatching.cancel();
    co_await dispatching.join();
    serving.cancel();
    co_await serving.join();
    background.cancel();
    co_await background.join();
    if (failure) std::rethrow_exception(failure);
  }
};

}  // namespace rw::dispatch::test
