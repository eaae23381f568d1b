#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/http/server.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/watchdog.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <future>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace rw::http::test {

/// How long a test waits for what must come.
inline constexpr auto patience = std::chrono::seconds(20);

/// Waits, on the test's thread, until `condition` holds; false if it never does.
template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds within = patience) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));  // leaves the core to the others
  }
  return true;
}

/// What every part of the process needs, driven by a thread of its own. The test's thread talks to
/// it over sockets.
class host {
 public:
  host() { tasks_.spawn(watchdog.run()); }
  ~host() { stop(); }
  host(const host&) = delete;
  host& operator=(const host&) = delete;

  boost::asio::any_io_executor executor() { return context.get_executor(); }

  void spawn(boost::asio::awaitable<void> task) { tasks_.spawn(std::move(task)); }

  /// Runs `task` on the host's thread and waits for what it returns.
  template <class T>
  T call(boost::asio::awaitable<T> task) {
    auto outcome = boost::asio::co_spawn(context, std::move(task), boost::asio::use_future);
    if (outcome.wait_for(patience) != std::future_status::ready) {
      throw std::runtime_error("no end in sight");
    }
    return outcome.get();
  }

  /// Calls `action` on the host's thread and waits for it.
  template <class Action>
  void on_thread(Action action) {
    std::promise<void> done;
    boost::asio::post(context, [&] {
      action();
      done.set_value();
    });
    done.get_future().get();
  }

  /// Cancels all tasks, and waits for them. What they refer to may go then.
  void stop() {
    if (!thread_.joinable()) return;
    tasks_.cancel();
    try {
      call(tasks_.join());
    } catch (const std::exception& e) {
      BOOST_ERROR("a task ended with an exception: " << e.what());
    }
    work_.reset();
    thread_.join();
  }

  /// The value of one time series, such as `rw_http_rejected_total{reason="flood",server="test"}`
  /// (labels in alphabetical order); -1 if there is none.
  double metric(const std::string& series) const {
    const auto text = core::expose(metrics);
    const auto line = '\n' + series + ' ';
    const auto at = text.find(line);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + line.size()));
  }

  /// True once a line with all of these was logged.
  bool logged(std::initializer_list<std::string_view> texts) {
    return eventually([&] {
      const std::lock_guard lock(guard_);
      return std::ranges::any_of(lines_, [&](const std::string& line) {
        return std::ranges::all_of(texts,
                                   [&](auto text) { return line.find(text) != std::string::npos; });
      });
    });
  }

  boost::asio::io_context context{1};
  core::real_clock clock;
  core::metrics metrics;
  core::logger log{core::log_level::debug, [this](std::string_view line) {
                     const std::lock_guard lock(guard_);
                     lines_.emplace_back(line);
                   }};
  core::watchdog watchdog{clock, context.get_executor(), std::chrono::milliseconds(10)};

 private:
  std::mutex guard_;
  std::vector<std::string> lines_;  ///< under `guard_`
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      context.get_executor()};
  core::task_group tasks_{context.get_executor()};
  std::thread thread_{[this] { context.run(); }};
};

/// A server on a host, under the name "test".
class running_server {
 public:
  running_server(host& where, core::transport& transport, handler& answers,
                 server_limits limits = {})
      : host_(where),
        server_(where.executor(), {"test", {boost::asio::ip::address_v4::loopback(), 0}, limits},
                answers, {transport, where.watchdog, where.log, where.metrics}),
        address(server_.address()) {
    host_.spawn(run());
  }

  server& get() { return server_; }
  bool finished() const { return finished_; }

  double rejected(const std::string& reason) const {
    return host_.metric("rw_http_rejected_total{reason=\"" + reason + "\",server=\"test\"}");
  }
  double requests(const std::string& protocol) const {
    return host_.metric("rw_http_requests_total{protocol=\"" + protocol + "\",server=\"test\"}");
  }

  /// Checks that `reason` was counted, once unless told otherwise, and nothing else.
  void check_rejected(const std::string& reason, int times = 1) const {
    eventually([&] { return rejected(reason) >= times; });
    BOOST_TEST(all_rejected() == reason + "=" + std::to_string(times) + " ");
  }

  /// All that was rejected, such as "flood=1 vanished=2 ".
  std::string all_rejected() const {
    std::string all;
    for (const auto* reason :
         {"connections", "handshakes", "handshake", "header_timeout", "body_timeout",
          "write_timeout", "malformed", "header_size", "body_size", "memory", "protocol", "flood",
          "streams", "vanished", "exception"}) {
      const auto times = rejected(reason);
      if (times > 0) all += reason + ("=" + std::to_string(static_cast<int>(times))) + " ";
    }
    return all;
  }

  /// Waits until every connection is closed.
  bool is_left_alone() const {
    return eventually([&] { return server_.open_connections() == 0; });
  }

 private:
  boost::asio::awaitable<void> run() {
    co_await server_.run();
    finished_ = true;
  }

  host& host_;
  server server_;
  std::atomic<bool> finished_{false};

 public:
  const boost::asio::ip::tcp::endpoint address;
};

}  // namespace rw::http::test
