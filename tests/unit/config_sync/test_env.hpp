#pragma once

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "core/task_group.hpp"
#include "core/watchdog.hpp"
#include "k8s/client.hpp"
#include "k8s/devserver/server.hpp"
#include "k8s/event_recorder.hpp"
#include "k8s/informer.hpp"
#include "reactors/bootstrapper_mode.hpp"
#include "reactors/cli/dev/kim.hpp"
#include "reactors/config_sync/config_sync.hpp"
#include "reactors/source_watch.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rw::config_sync::test {

/// Waits until the kernel has delivered what this thread sent over loopback.
class loopback_fence {
 public:
  loopback_fence();
  void flush();

 private:
  boost::asio::io_context context_{1};
  boost::asio::ip::tcp::socket near_{context_};
  boost::asio::ip::tcp::socket far_{context_};
};

/// A control plane with Runtimes, on an embedded API server behind real sockets, and on a clock
/// that is advanced whenever nothing else is left to happen. `start` and `stop` are those of the
/// reactor; a simulated KIM is there from `start_kim` on, and otherwise the test takes marks
/// itself.
class test_env {
 public:
  using value = boost::json::value;

  explicit test_env(sync_options options = {});
  ~test_env();
  test_env(const test_env&) = delete;
  test_env& operator=(const test_env&) = delete;

  void start();
  void start(sync_options options) {
    options_ = std::move(options);
    start();
  }
  /// Cancelled, in the middle of whatever it does.
  void stop();
  bool is_running() const noexcept { return running_ != nullptr; }

  /// Runs until the request has ended; time passes where it has to wait.
  template <class T>
  k8s::result<T> call(boost::asio::awaitable<k8s::result<T>> request) {
    std::optional<k8s::result<T>> got;
    finish(keep(std::move(request), &got));
    return std::move(*got);
  }
  /// What the request brings, which must succeed.
  template <class T>
  T ok(boost::asio::awaitable<k8s::result<T>> request) {
    auto got = call(std::move(request));
    BOOST_REQUIRE_MESSAGE(got.has_value(), (got.has_value() ? "" : got.error().message));
    if constexpr (!std::is_void_v<T>) return std::move(*got);
  }

  /// The source holds `content`, whether it was there before or not.
  void put(source which, const std::string& content);
  void remove(source which);
  /// Of the source as it is.
  std::string digest(source which);
  /// Changes nothing but metadata.
  void touch(source which, const std::string& label);

  void add_runtime(const std::string& name);
  void remove_runtime(const std::string& name);
  value runtime(const std::string& name);
  /// Sets annotations of a Runtime, or removes those that are null.
  void annotate(const std::string& name, const value& annotations);
  /// A merge patch of its metadata.
  void change(const std::string& name, const value& metadata);

  value record();
  std::optional<value> find_record();
  void remove_record();
  bool has_event(std::string_view object, std::string_view reason);

  /// Lets time pass, alarm by alarm.
  void pass(core::duration by);
  /// Lets time pass until `condition` holds, which must be so within simulated minutes.
  void eventually(const std::function<bool()>& condition, std::string_view what);

  /// KIM, which writes what it reads of the sources to `configured`.
  void start_kim(cli::dev::kim_options options);
  void stop_kim();
  cli::dev::kim& kim();
  const std::string& configured(const std::string& runtime) { return configured_[runtime]; }
  /// What KIM would write now.
  std::string content();

  double metric(const std::string& series) const;
  double marks() const { return marks("change") + marks("retry"); }
  double marks(const std::string& reason) const {
    return metric("rw_config_sync_marks_total{reason=\"" + reason + "\"}");
  }
  double count(const std::string& state) const {
    return metric("rw_config_sync_runtimes{state=\"" + state + "\"}");
  }
  const std::string& logged() const noexcept { return logged_; }

  // One Runtime.
  bool is_marked(const std::string& name) { return carries_mark(runtime(name)); }
  std::string noted(const std::string& name);
  std::string version(const std::string& name);
  /// As KIM takes a mark, without any of what follows.
  void take(const std::string& name);
  void set_state(const std::string& name, const std::string& state);

  std::unique_ptr<k8s::client> connect(const std::string& name);
  k8s::client& author() noexcept { return *author_; }
  void faults(std::function<k8s::devserver::fault(const std::string& verb, const std::string& path)>
                  decide);
  core::task_group& tasks() noexcept { return tasks_; }
  boost::asio::any_io_executor executor() { return context_.get_executor(); }
  void finish(boost::asio::awaitable<void> work);

  core::manual_clock clock;
  core::metrics metrics;
  core::logger log{core::log_level::debug, [this](std::string_view line) { logged_ += line; }};

 private:
  struct running;
  struct running_kim;

  template <class T>
  static boost::asio::awaitable<void> keep(boost::asio::awaitable<T> request,
                                           std::optional<T>* into) {
    into->emplace(co_await std::move(request));
  }
  void settle();

  boost::asio::io_context context_{1};
  loopback_fence loopback_;
  std::string logged_;
  core::watchdog watchdog_{clock, context_.get_executor(), std::chrono::seconds(1)};
  k8s::devserver::server server_{context_.get_executor(),
                                 {.storage_delay = std::chrono::seconds(1)},
                                 {clock, watchdog_, log, metrics}};
  core::task_group tasks_{context_.get_executor()};
  std::unique_ptr<k8s::client> author_;
  sync_options options_;
  std::unique_ptr<running> running_;
  std::unique_ptr<running_kim> kim_;
  std::map<std::string, std::string> configured_;
};

/// Two Runtimes that are older than what is changed later, and all sources.
struct landscape : test_env {
  explicit landscape(sync_options options = {}) : test_env(std::move(options)) {
    for (const auto which : all_sources) put(which, "v1");
    add_runtime("r1");
    add_runtime("r2");
    pass(std::chrono::hours(1));
  }

  void begin() {
    start();
    debounce();
  }
  /// Every change that was observed has been signalled.
  void debounce() { pass(std::chrono::seconds(15)); }
  /// And what KIM was told has ended.
  void quiet() { pass(std::chrono::minutes(3)); }
};

}  // namespace rw::config_sync::test
