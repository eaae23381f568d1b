#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/task_group.hpp"
#include "rw/k8s/cache/api_source.hpp"
#include "rw/k8s/cache/informer.hpp"

#include <boost/asio/awaitable.hpp>

#include "tests/unit/k8s/chance.hpp"
#include "tests/unit/k8s/journal.hpp"
#include "tests/unit/k8s/samples.hpp"
#include "tests/unit/k8s/watcher_view.hpp"
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rw::k8s::test {

/// What there really is on a server.
class truth {
 public:
  virtual ~truth() = default;
  virtual std::size_t size() const = 0;
  /// True if the server has exactly this; of an object that is not `whole`, only the metadata.
  virtual bool holds(const object& one, bool whole) const = 0;
  /// True if there ever was an object of this uid.
  virtual bool existed(const std::string& uid) const = 0;
};

/// What a participant lives in; all of it outlives it.
struct participant_environment {
  const truth& server;
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
};

/// One informer, and three who listen to it: one that is always ready, one that is slow, and one
/// that comes and goes.
class participant {
 public:
  participant(std::string name, std::uint64_t seed, std::shared_ptr<api_source> source,
              informer_options options, view_rules rules, participant_environment in)
      : name_(std::move(name)),
        in_(in),
        chance_(seed),
        rules_(rules),
        whole_(!options.objects.metadata_only),
        told_(in.clock),
        informer_(std::move(source), configmaps(), std::move(options),
                  {in.clock, in.log, in.metrics, chance_.source()}),
        fast_(rules),
        slow_(rules) {}

  void start(core::task_group& tasks) {
    using std::chrono::seconds;
    tasks.spawn(informer_.run());
    tasks.spawn(listen(this, informer_.subscribe(64), &fast_, seconds(0), alarm(tasks)));
    tasks.spawn(listen(this, informer_.subscribe(1), &slow_, seconds(20), alarm(tasks)));
    tasks.spawn(come_and_go(this, alarm(tasks)));
  }

  /// True if store and listeners are as the server is.
  bool is_level() const {
    return informer_.synced() && is_level(slow_) && is_level(fast_) && store_is_level();
  }

  /// All that is wrong once everything is quiet, with what was told at last; empty if nothing is.
  std::string problems() const {
    std::vector<std::string> all;
    if (!informer_.synced()) all.emplace_back("no list was ever complete");
    if (!store_is_level()) all.emplace_back("the store is not equal to the server");
    judge(fast_, "the fast one", all);
    judge(slow_, "the slow one", all);
    for (const auto& wrong : wrong_visits_) all.push_back("one that came and went: " + wrong);
    if (all.empty()) return {};
    std::string text = "  " + name_ + "\n";
    constexpr std::size_t most = 10;
    for (std::size_t i = 0; i < std::min(all.size(), most); ++i) text += "   " + all[i] + "\n";
    if (all.size() > most) text += "   and " + std::to_string(all.size() - most) + " more\n";
    return text + "   was told at last:\n" + told_.tail();
  }

  std::size_t deltas() const noexcept { return fast_.deltas(); }

 private:
  std::unique_ptr<core::timer> alarm(core::task_group& tasks) const {
    return in_.clock.make_timer(tasks.get_executor());
  }

  static boost::asio::awaitable<void> listen(participant* self, informer::subscription from,
                                             watcher_view* into, core::duration pause,
                                             std::unique_ptr<core::timer> alarm) {
    for (;;) {
      const auto next = co_await from->receive();
      if (next.has_error()) co_return;
      if (into == &self->fast_) self->note(*next);
      into->take(*next);
      if (pause == core::duration::zero()) continue;
      alarm->expires_at(self->in_.clock.now() + self->chance_.up_to(pause));
      const bool due = co_await alarm->wait();
      if (!due) co_return;
    }
  }

  /// Subscribes in the middle, hears a few deltas, and goes, again and again.
  static boost::asio::awaitable<void> come_and_go(participant* self,
                                                  std::unique_ptr<core::timer> alarm) {
    for (;;) {
      alarm->expires_at(self->in_.clock.now() + self->chance_.up_to(std::chrono::seconds(60)));
      const bool due = co_await alarm->wait();
      if (!due) co_return;
      watcher_view seen(self->rules_);
      const auto from = self->informer_.subscribe(4);
      const auto most = self->chance_.draw(200);
      for (std::size_t i = 0; i < most; ++i) {
        const auto next = co_await from->receive();
        if (next.has_error()) co_return;
        seen.take(*next);
      }
      from->close();
      auto& wrong = self->wrong_visits_;
      wrong.insert(wrong.end(), seen.wrong().begin(), seen.wrong().end());
    }
  }

  void note(const delta& told) {
    constexpr const char* kinds[] = {"added ", "updated ", "deleted "};
    told_.note(kinds[static_cast<std::size_t>(told.type)] + std::string(told.latest().name()) +
               " " + std::string(told.before.resource_version()) + " -> " +
               std::string(told.now.resource_version()));
  }

  bool is_level(const watcher_view& view) const {
    return view.objects().size() == in_.server.size() &&
           std::ranges::all_of(view.objects(), [this](const auto& each) {
             return in_.server.holds(each.second, whole_);
           });
  }

  bool store_is_level() const {
    bool level = informer_.objects().size() == in_.server.size();
    informer_.objects().for_each(
        [&](const object& each) { level = level && in_.server.holds(each, whole_); });
    return level;
  }

  void judge(const watcher_view& view, const std::string& who,
             std::vector<std::string>& into) const {
    for (const auto& wrong : view.wrong()) into.push_back(who + ": " + wrong);
    if (!is_level(view)) into.push_back(who + " believes something else than the server");
    for (const auto& [uid, unused] : view.lives()) {
      if (!in_.server.existed(uid))
        into.push_back(who + " was told of " + uid + ", which never was");
    }
    if (view.deltas() > fast_.deltas()) into.push_back(who + " was told more than the fast one");
  }

  const std::string name_;
  const participant_environment in_;
  chance chance_;
  const view_rules rules_;
  const bool whole_;
  journal told_;  ///< to the fast one
  informer informer_;
  watcher_view fast_;
  watcher_view slow_;
  std::vector<std::string> wrong_visits_;
};

}  // namespace rw::k8s::test
