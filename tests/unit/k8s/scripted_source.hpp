#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/k8s/cache/api_source.hpp"
#include "rw/k8s/cache/informer.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/samples.hpp"
#include "tests/unit/manual_clock.hpp"
#include "tests/unit/run.hpp"
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rw::k8s::test {

/// Stands for an API server, call by call: each waits until the test says what comes of it.
class scripted_source final : public api_source {
 public:
  explicit scripted_source(boost::asio::any_io_executor executor)
      : executor_(executor), answered_(executor) {}

  // What the informer calls.

  boost::asio::any_io_executor get_executor() const noexcept override { return executor_; }

  boost::asio::awaitable<result<std::pair<unsigned, unsigned>>> server_version() override {
    co_await answer_to("version");
    if (failure_) co_return *std::exchange(failure_, std::nullopt);
    co_return version;
  }

  boost::asio::awaitable<result<std::string>> list_text(resource_type, selection what,
                                                        list_options page) override {
    auto asked = "list " + std::to_string(page.limit);
    if (!page.continue_token.empty()) asked += " more=" + page.continue_token;
    if (what.metadata_only) asked += " metadata";
    co_await answer_to(asked);
    if (failure_) co_return *std::exchange(failure_, std::nullopt);
    co_return std::exchange(body_, {});
  }

  boost::asio::awaitable<result<opened_watch>> open_watch(resource_type, selection,
                                                          watch_options options,
                                                          watch_sink& into) override {
    sink_ = &into;
    watched = options;
    if (accepts_watches) into.begin();
    const auto asked =
        options.send_initial_events ? std::string("stream") : "watch " + options.resource_version;
    co_await answer_to(asked);
    sink_ = nullptr;
    if (failure_) co_return *std::exchange(failure_, std::nullopt);
    co_return std::exchange(opened_, nullptr);
  }

  bool streams_lists() const noexcept override { return streams; }
  void rule_out_streaming_lists() noexcept override { streams = false; }

  // What the test says.

  /// The call that waits for an answer; empty if there is none.
  std::string call;

  void answer() {
    call.clear();
    answered_.set();
  }
  void answer(std::string body) {
    body_ = std::move(body);
    answer();
  }
  /// The watch goes on until its result goes.
  void open(opened_watch opened) {
    opened_ = std::move(opened);
    answer();
  }
  void fail(errc code, unsigned status = 0) {
    failure_ = failure{.code = code, .status = status, .message = "as scripted"};
    answer();
  }
  /// Bytes of the watch that is under way. False if it is not wanted any more, and ends then.
  bool send(std::string_view bytes) {
    BOOST_REQUIRE(sink_ != nullptr);
    const bool go_on = sink_->take(bytes);
    if (!go_on) fail(errc::unreachable);
    return go_on;
  }

  std::pair<unsigned, unsigned> version{1, 32};
  watch_options watched;
  bool streams = true;          ///< no streaming list has come to nothing
  bool accepts_watches = true;  ///< a watch's answer begins at once

 private:
  boost::asio::awaitable<void> answer_to(std::string what) {
    BOOST_TEST(call.empty(), "one call at a time");
    call = std::move(what);
    const auto cancelled = co_await answered_.wait();
    if (cancelled) {
      call.clear();
      sink_ = nullptr;
      throw boost::system::system_error(boost::asio::error::operation_aborted);
    }
  }

  const boost::asio::any_io_executor executor_;
  core::wake answered_;
  watch_sink* sink_ = nullptr;
  std::string body_;
  opened_watch opened_;
  std::optional<failure> failure_;
};

/// What is in a store, in the order of the names: "a@1 b@7".
inline std::string contents(const store& objects) {
  std::vector<std::string> all;
  objects.for_each([&](const object& each) {
    all.push_back(std::string(each.name()) + "@" + std::string(each.resource_version()));
  });
  std::ranges::sort(all);
  std::string text;
  for (const auto& each : all) text += (text.empty() ? "" : " ") + each;
  return text;
}

/// "+a@1", "~a@1>2", "-a@2".
inline std::string words(const delta& told) {
  const std::string name(told.latest().name());
  const std::string before(told.before.resource_version());
  const std::string now(told.now.resource_version());
  switch (told.type) {
    case delta::kind::added:
      return "+" + name + "@" + now;
    case delta::kind::updated:
      return "~" + name + "@" + before + ">" + now;
    case delta::kind::deleted:
      return "-" + name + "@" + before;
  }
  return {};
}

/// An informer of ConfigMaps on a manual clock.
class informer_world {
 public:
  /// Runs `body` with the informer, and ends that afterwards.
  void run(std::function<boost::asio::awaitable<void>()> body) {
    under_test.emplace(source, configmaps(), options, environment());
    rw::test::run(context, around(std::move(body)));
  }

  /// Waits until the informer has called.
  boost::asio::awaitable<void> expect(std::string call) {
    const bool came = co_await rw::test::eventually([&] { return !source->call.empty(); });
    BOOST_REQUIRE_MESSAGE(came, "no call came, but should: " << call);
    BOOST_TEST(source->call == call);
  }

  /// Lets time pass until the next alarm, and the informer call again.
  boost::asio::awaitable<core::duration> pause() {
    co_await turns();
    const auto none = core::time_point::max();
    const bool set = co_await rw::test::eventually([&] { return clock.next_alarm() != none; });
    BOOST_REQUIRE(set);
    const auto by = clock.next_alarm() - clock.now();
    clock.advance(by);
    co_return by;
  }

  boost::asio::awaitable<void> turns() {
    for (int i = 0; i < 20; ++i) co_await rw::test::turn();
  }

  /// What lies ready, such as "+a@1 ~a@1>2".
  static std::string taken(core::channel<delta>& from) {
    std::string text;
    while (auto next = from.try_receive()) text += (text.empty() ? "" : " ") + words(*next);
    return text;
  }

  std::string contents() const { return test::contents(under_test->objects()); }

  double metric(const std::string& name, const std::string& labels = {}) const {
    const auto text = core::expose(metrics);
    const auto line =
        "\n" + name + "{" + labels + (labels.empty() ? "" : ",") + "resource=\"configmaps\"} ";
    auto at = text.find(line);
    if (at != std::string::npos) return std::stod(text.substr(at + line.size()));
    const auto other =
        "\n" + name + "{resource=\"configmaps\"" + (labels.empty() ? "" : ",") + labels + "} ";
    at = text.find(other);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + other.size()));
  }

  boost::asio::io_context context{1};
  core::manual_clock clock;
  core::metrics metrics;
  std::string log_text;
  core::logger log{core::log_level::debug, [this](std::string_view line) { log_text += line; }};
  informer_options options{.streaming_list = false};
  std::shared_ptr<scripted_source> source =
      std::make_shared<scripted_source>(context.get_executor());
  std::optional<informer> under_test;

 private:
  informer_environment environment() {
    return {clock, log, metrics, [state = std::uint64_t{1}]() mutable {
              state = state * 6364136223846793005U + 1442695040888963407U;
              return state >> 16;
            }};
  }

  boost::asio::awaitable<void> around(std::function<boost::asio::awaitable<void>()> body) {
    core::task_group tasks(context.get_executor());
    tasks.spawn(under_test->run());
    std::exception_ptr failure;
    try {
      co_await body();
    } catch (...) {
      failure = std::current_exception();
    }
    tasks.cancel();
    co_await tasks.join();
    if (failure) std::rethrow_exception(failure);
  }
};

}  // namespace rw::k8s::test
