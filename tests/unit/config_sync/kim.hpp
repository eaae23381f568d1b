#pragma once

#include "core/clock.hpp"
#include "core/task_group.hpp"
#include "core/watchdog.hpp"
#include "k8s/client.hpp"
#include "k8s/controller.hpp"
#include "k8s/informer.hpp"
#include "k8s/reconciler.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper_mode.hpp"
#include "reactors/config_sync/signal.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>

#include "tests/unit/config_sync/cluster.hpp"
#include "tests/unit/k8s/chance.hpp"
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace rw::config_sync::test {

/// What the sources held at which time, as one text.
class past {
 public:
  void note(core::time_point when, std::string content) {
    all_.emplace_back(when, std::move(content));
  }
  const std::string& at(core::time_point when) const {
    const std::string* found = &all_.front().second;
    for (const auto& [since, content] : all_) {
      if (since <= when) found = &content;
    }
    return *found;
  }
  const std::string& last() const { return all_.back().second; }

 private:
  std::deque<std::pair<core::time_point, std::string>> all_;
};

/// What is known of the KIM that is simulated.
struct kim_habits {
  mark_forms reads = {.annotation = true};             ///< that make it work
  mark_forms takes = {.annotation = true};             ///< off
  core::duration cache_lag = std::chrono::seconds(1);  ///< at most, of what it reads
  core::duration work = std::chrono::seconds(30);      ///< at most, each of three parts
  std::size_t workers = 3;
};

/// Kyma Infrastructure Manager, and where a Runtime is `direct`, who else writes to its runtime.
/// One reconcile of a Runtime reads the sources, from a cache that lags behind, configures the
/// runtime with what it read, and takes the mark off somewhere in between; parts of it take their
/// time. It does so for a new Runtime, for a marked one, and now and then for none of these
/// reasons. It leaves suspended ones alone.
class kim final : k8s::reconciler {
 public:
  kim(cluster& in, const past& sources, std::uint64_t seed, kim_habits with)
      : in_(in),
        sources_(sources),
        with_(with),
        chance_(seed),
        api_(in.connect("kim")),
        watchdog_(in.clock, in.executor(), std::chrono::seconds(1)),
        runtimes_(*api_, runtimes_type(), {.what = {.ns = std::string(kcp_namespace)}},
                  {in.clock, in.log, in.metrics, chance_.source()}),
        core_(in.executor(), {.name = "kim", .concurrent = with.workers}, *this,
              {in.clock, watchdog_, in.log, in.metrics, chance_.source()}),
        tasks_(in.executor()) {
    core_.watch(runtimes_);
    tasks_.spawn(watchdog_.run());
    tasks_.spawn(runtimes_.run());
    tasks_.spawn(core_.run());
  }
  ~kim() override {
    tasks_.cancel();
    in_.finish(tasks_.join());
    in_.finish(api_->close());
  }
  kim(const kim&) = delete;
  kim& operator=(const kim&) = delete;

  /// Reconciles a Runtime for a reason of its own.
  void reconcile_anyway(const std::string& name) {
    due_.insert(name);
    core_.add({std::string(kcp_namespace), name});
  }

  /// What each runtime was configured with last; "somebody else's" where KIM did not.
  const std::map<std::string, std::string>& configured() const noexcept { return configured_; }
  std::size_t reconciles() const noexcept { return reconciles_; }

 private:
  boost::asio::awaitable<void> take_time() {
    const auto alarm = in_.clock.make_timer(in_.executor());
    alarm->expires_at(in_.clock.now() +
                      (chance_.likely(0.3) ? core::duration::zero() : chance_.up_to(with_.work)));
    co_await alarm->wait();
  }

  bool asks(const boost::json::value& runtime) const {
    const auto forms = forms_on(runtime);
    return (with_.reads.annotation && forms.annotation) || (with_.reads.label && forms.label);
  }

  boost::asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key key) override {
    const auto found = runtimes_.objects().get(key);
    if (!found) co_return k8s::reconcile_result::done();
    const auto runtime = found.parse();
    const auto mode = mode_of(runtime, bootstrapper_mode::signal);
    const bool asked = asks(runtime);
    const bool direct = mode == bootstrapper_mode::direct;
    if (direct && is_handed_over(runtime) && !is_suspended(runtime)) {
      configured_[key.name] = "somebody else's";
    }
    if (is_suspended(runtime) || (direct && !asked)) co_return k8s::reconcile_result::done();
    if (asked || !configured_.contains(key.name)) due_.insert(key.name);
    if (!due_.contains(key.name)) co_return k8s::reconcile_result::done();
    ++reconciles_;
    const auto when = chance_.draw(3);
    co_await take_time();
    const auto read = sources_.at(in_.clock.now() - chance_.up_to(with_.cache_lag));
    bool good = true;
    if (asked && when == 0) good = co_await take_off(key);
    co_await take_time();
    if (asked && when == 1) good = co_await take_off(key);
    if (runtimes_.objects().get(key)) configured_[key.name] = read;
    co_await take_time();
    if (asked && when == 2) good = co_await take_off(key);
    if (!good) co_return k8s::reconcile_result::error("the mark can't be taken off");
    due_.erase(key.name);
    co_return k8s::reconcile_result::done();
  }

  /// By merge patch, at no version in particular.
  boost::asio::awaitable<bool> take_off(k8s::object_key key) {
    boost::json::object metadata;
    const boost::json::object off{{force_reconciliation_mark, nullptr}};
    if (with_.takes.annotation) metadata["annotations"] = off;
    if (with_.takes.label) metadata["labels"] = off;
    boost::json::value change = boost::json::object{{"metadata", std::move(metadata)}};
    const auto done = co_await api_->patch(runtimes_type(), key, k8s::patch_type::merge,
                                           std::move(change), {.field_manager = "kim"});
    const bool gone = done.has_error() && done.error().is(k8s::errc::not_found);
    co_return done.has_value() || gone;
  }

  cluster& in_;
  const past& sources_;
  const kim_habits with_;
  k8s::test::chance chance_;
  std::unique_ptr<k8s::client> api_;
  core::watchdog watchdog_;
  k8s::informer runtimes_;
  std::map<std::string, std::string> configured_;
  std::set<std::string> due_;  ///< to be reconciled, and not done with
  std::size_t reconciles_ = 0;
  k8s::controller core_;
  core::task_group tasks_;
};

}  // namespace rw::config_sync::test
