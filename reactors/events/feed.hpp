#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/early_pause.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/wake.hpp"
#include "rw/k8s/cache/list_watch.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/reactors/events/list_turns.hpp"
#include "rw/reactors/events/observer.hpp"
#include "rw/reactors/events/plan.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace rw::observation {

struct feed_options {
  core::duration retry_base = {};
  core::duration retry_limit = {};
};

/// All of it must outlive the feed.
struct feed_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
  k8s::client& api;
  observer& into;
  std::function<void()> on_input;  ///< the observer may have changed
  std::shared_ptr<list_turns> turns;
};

/// Lists and watches one resource for the observer; where that is refused, again and again. A
/// resource that no version of its group has, by two proofs 30 s apart, has no objects: the
/// observer gets an empty list once. Waits for its turn with each list; a request that fails ends
/// the turn. On the client's executor.
class feed final : k8s::object_sink {
 public:
  feed(observed_resource resource, feed_options options, feed_environment environment);

  const observed_resource& resource() const noexcept { return resource_; }
  bool has(const managed_watch& watch) const;
  /// Goes on for those of its Watchers that are among these. False: none is.
  bool retain(const std::vector<managed_watch>& watches);
  /// Why events come from reviews alone at present; empty: it is live, or about to be.
  const std::string& given_up() const noexcept { return given_up_; }
  /// It is proven not to be served: no object of it exists.
  bool is_absent() const noexcept { return is_absent_; }
  /// Since when all of it is known, by a watch or because it is absent. Nothing: it is not.
  std::optional<core::time_point> live_since() const noexcept { return live_since_; }

  /// Runs until `end`, or until cancelled.
  static boost::asio::awaitable<void> run(std::shared_ptr<feed> self);
  /// Nothing of it reaches the observer any more.
  void end();
  /// Lists at once, unless it does.
  void list_again();
  /// The API server has shown that it is alive: ends the pause after it was away, at most once a
  /// second.
  void try_early();
  /// Watches end without having brought anything (`k8s::watch_health`).
  bool is_suspect() const noexcept { return driver_ != nullptr && driver_->suspect_since(); }

 private:
  class source;

  boost::asio::awaitable<k8s::result<k8s::discovered_resource>> discover();
  boost::asio::awaitable<bool> is_unserved();
  boost::asio::awaitable<void> look_for_absence();
  boost::asio::awaitable<void> observe(k8s::discovered_resource found);
  void stop(std::string_view reason);
  void give_up(const std::string& reason);

  // object_sink
  void begin_listing() override;
  void put(k8s::object next) override;
  void remove(const k8s::object& last) override;
  void end_listing() override;
  void live(bool live) override;
  void request_failed(const k8s::failure& error) override;
  void after_input() override;

  observed_resource resource_;
  const feed_options options_;
  const feed_environment environment_;
  core::wake stopped_;
  list_turn turn_;
  bool lists_ = false;                              ///< a list is not complete
  bool has_status_ = false;                         ///< the kind has that subresource
  std::optional<core::time_point> unserved_since_;  ///< by the first proof in a row
  bool is_absent_ = false;                          ///< the observer got an empty list for that
  k8s::list_watch* driver_ = nullptr;               ///< while it runs
  core::early_pause pause_;
  std::string reason_;    ///< why it stops; empty: it does not
  std::string given_up_;  ///< the reason that was logged last
  std::optional<core::time_point> live_since_;
  unsigned failures_ = 0;  ///< since it was live
  bool ended_ = false;
};

}  // namespace rw::observation
