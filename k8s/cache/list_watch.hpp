#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/k8s/cache/api_source.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/k8s/objects/object.hpp"
#include "rw/k8s/objects/projection.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace rw::k8s {

struct list_watch_options {
  selection objects = {};
  projection keep = projection::without_managed_fields();
  std::uint32_t page = 500;    ///< objects of one page of a list
  bool streaming_list = true;  ///< where the server has it (Kubernetes 1.32)
  bool any_version = false;    ///< objects may say another version of the type's group
  bool any_cost = false;  ///< objects are not made DOMs of, and may be over the budget of read_json

  /// A watch lasts as long as chosen at random between this and twice this, then is begun anew.
  std::chrono::seconds watch_timeout = std::chrono::minutes(5);
  /// A watch that brought nothing for so long, not even a bookmark, counts as broken; 0: as
  /// watch_options::silence.
  std::chrono::milliseconds silence{0};
  std::size_t event_bytes = 8u << 20;  ///< of one watch event; a larger one is listed instead

  std::chrono::milliseconds backoff_base = std::chrono::milliseconds(800);
  std::chrono::milliseconds backoff_limit = std::chrono::seconds(30);
};

/// All of it must outlive its user.
struct list_watch_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
};

/// Receives what a list_watch reads.
class object_sink {
 public:
  virtual ~object_sink() = default;

  /// A list begins, from its start: what an unfinished one has put counts as not listed.
  virtual void begin_listing() = 0;
  virtual void put(object next) = 0;
  /// An object has a state that is over the budget of read_json, and is not given: only its
  /// identity counts. It exists, so what was known of it, not of one before it, stays.
  virtual void keep(const object& over_budget) { static_cast<void>(over_budget); }
  /// `last`: the object's last state.
  virtual void remove(const object& last) = 0;
  /// The list is complete: an object that it did not put does not exist.
  virtual void end_listing() = 0;
  /// True from the response to a watch that follows a complete list until that watch ends. Not
  /// called when the driver is cancelled.
  virtual void live(bool) {}
  /// A page of a list or a watch failed. The driver retries it.
  virtual void request_failed(const failure&) {}
  /// After each piece of input.
  virtual void after_input() = 0;
};

/// Lists and watches one resource for as long as it runs, and passes what it reads to a sink: the
/// driver of a `reflector`. A failure is logged, and retried as the reflector decides.
///
/// Metrics: those of `informer`. On the source's executor.
class list_watch {
 public:
  /// `into` must outlive it.
  list_watch(std::shared_ptr<api_source> api, resource_type type, list_watch_options options,
             list_watch_environment environment, object_sink& into);
  ~list_watch();
  list_watch(const list_watch&) = delete;
  list_watch& operator=(const list_watch&) = delete;

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

  /// What was read is proven wrong: cancels the request under way, a list's too, and lists from the
  /// start. The sink stays as live as it is unless that fails. A pause after a failure is not
  /// shortened; the list follows it.
  void list_again();

  /// The server has shown that it is alive: ends the pause after it was away, at most once a
  /// second.
  void try_early();

  /// Since when watches end without having brought anything (`watch_health`); nothing: they do not,
  /// or the one under way has lasted.
  std::optional<core::time_point> suspect_since() const noexcept;

  /// Publishes the metrics.
  void report(std::size_t objects, std::size_t pending);

  const std::string& resource_version() const noexcept;
  const resource_type& type() const noexcept;

 private:
  class implementation;
  const std::unique_ptr<implementation> impl_;
};

}  // namespace rw::k8s
