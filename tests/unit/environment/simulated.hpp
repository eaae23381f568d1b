#pragma once

#include "rw/k8s/objects/failure.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "tests/unit/environment/environment.hpp"
#include "tests/unit/manual_clock.hpp"
#include <chrono>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace rw::test {

/// Waits until the kernel has delivered what this thread sent over loopback.
class loopback_fence {
 public:
  loopback_fence();
  void flush();

 private:
  asio::io_context context_{1};
  asio::ip::tcp::socket near_{context_};
  asio::ip::tcp::socket far_{context_};
};

/// A clock that is advanced whenever nothing else is left to happen on a context. The test drives
/// it from outside, without coroutines of its own.
class simulated_time {
 public:
  /// Both must outlive it. `fenced`: waits for what the kernel may put off on a busy machine.
  simulated_time(asio::io_context& context, core::manual_clock& time, bool fenced = true);

  /// Lets everything happen that can without time passing.
  void settle();
  /// Lets time pass, alarm by alarm.
  void pass(core::duration by);
  /// Runs until `work` has ended; time passes where it has to wait.
  void finish(asio::awaitable<void> work);

 private:
  void step(core::time_point until);

  asio::io_context& context_;
  core::manual_clock& time_;
  std::optional<loopback_fence> loopback_;
};

/// An environment in simulated time.
class simulated : public environment, public simulated_time {
 public:
  explicit simulated(k8s::devserver::server_options server = {},
                     core::random_source (*make_random)() = core::make_random_source,
                     std::chrono::system_clock::time_point wall = std::chrono::system_clock::now());
  ~simulated() override;

  /// Lets time pass until `condition` holds, which must be so within simulated minutes.
  void eventually(const std::function<bool()>& condition, std::string_view what);

  /// What the work brings.
  template <class T>
  T call(asio::awaitable<T> request) {
    std::optional<T> got;
    finish(keep(std::move(request), &got));
    return std::move(*got);
  }
  /// The same of a request, which must succeed.
  template <class T>
  T ok(asio::awaitable<k8s::result<T>> request) {
    return required(call(std::move(request)));
  }

 private:
  template <class T>
  static asio::awaitable<void> keep(asio::awaitable<T> request, std::optional<T>* into) {
    into->emplace(co_await std::move(request));
  }
};

}  // namespace rw::test
