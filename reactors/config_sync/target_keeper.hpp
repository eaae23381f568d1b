#pragma once

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/wake.hpp"
#include "k8s/client.hpp"
#include "k8s/informer.hpp"
#include "reactors/config_sync/record.hpp"
#include "reactors/source_watch.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace rw::config_sync {

struct keeper_options {
  /// How long the sources must have been still before a new target is told: changes that belong
  /// together become one, and caches that KIM may read from catch up.
  core::duration settle = std::chrono::seconds(2);
  /// So long at most it is waited for that. A target that is told because of it is followed by
  /// another one once the sources are still, since KIM may not have seen the latest change.
  core::duration settle_limit = std::chrono::seconds(30);
  std::string field_manager = {};  ///< of the record
};

/// All of it must outlive the keeper.
struct keeper_environment {
  k8s::client& api;  ///< with the leader's fence, where there is one
  core::clock& clock;
  core::logger& log;
  core::random_source random;
};

/// Keeps the target in step with the sources, and in the record (record.hpp) first. Each change of
/// the sources' digest that is seen makes a new target, also one that takes back what was not told
/// yet: a runtime may have got it. So the record says at once that there was a change, and again
/// what became of it once the sources are still.
///
/// A record that can't be read or written is tried again with backoff; until then the target stays.
class target_keeper {
 public:
  /// `tell` is called with each new target, once it is recorded. Sources and informer of Runtimes
  /// are run by somebody else.
  target_keeper(boost::asio::any_io_executor executor, source_watch& sources,
                k8s::informer& runtimes, keeper_options options, keeper_environment environment,
                std::function<void(const target&)> tell);

  /// Runs until cancelled, once.
  boost::asio::awaitable<void> run();

  /// None: not known yet.
  const std::optional<target>& current() const noexcept { return current_; }
  /// False: the sources have changed, and another target is about to follow.
  bool settled() const noexcept { return current_ && answers_ && changes_ == kept_changes_; }
  /// True: who is to be marked may as well be marked for the target that is about to follow. Not
  /// where the sources do not come to rest.
  bool can_wait() const noexcept { return !settled() && !is_passing(); }

 private:
  void look();
  bool known() const noexcept { return !seen_.empty() && runtimes_.synced(); }
  boost::asio::awaitable<bool> await_known();
  bool is_passing() const noexcept;
  bool is_final() const noexcept { return settled() && current_->of.digest == seen_; }
  bool is_noticed() const;
  core::time_point still_at() const { return changed_at_ + options_.settle; }
  boost::asio::awaitable<bool> await_settled();
  boost::asio::awaitable<bool> load();
  boost::asio::awaitable<bool> notice();
  boost::asio::awaitable<bool> keep();
  boost::asio::awaitable<k8s::result<void>> write(target now);
  boost::asio::awaitable<bool> repair(k8s::failure why);
  boost::asio::awaitable<bool> pause(core::duration by);
  boost::asio::awaitable<bool> fail(std::string_view what, k8s::failure why);
  target wanted() const;
  void publish(target now);

  const boost::asio::any_io_executor executor_;
  source_watch& sources_;
  k8s::informer& runtimes_;
  const keeper_options options_;
  const keeper_environment environment_;
  const std::function<void(const target&)> tell_;
  core::wake wake_;
  core::backoff backoff_;
  core::log_limit log_limit_{1, std::chrono::minutes(1)};

  std::string seen_;           ///< the sources' digest
  std::uint64_t changes_ = 0;  ///< of it that were seen
  core::time_point changed_at_{};
  std::optional<core::time_point> unsettled_since_;
  boost::json::value stored_;       ///< the record as it lies there; null: there is none
  std::uint64_t kept_changes_ = 0;  ///< those that `current_` is from
  std::optional<target> current_;
  bool answers_ = false;  ///< `current_` is what the sources held, at those changes
};

}  // namespace rw::config_sync
