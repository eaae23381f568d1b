#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/dispatch/observed_objects.hpp"
#include "rw/reactors/observation/journal.hpp"
#include "rw/reactors/observation/kept_objects.hpp"
#include "rw/reactors/observation/plan.hpp"
#include "rw/reactors/shared/gap_account.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::observation {

/// All of it must outlive the record.
struct delivery_record_environment {
  dispatch::observed_objects& objects;
  gap_account* gaps = nullptr;          ///< its counts are kept, too; null: there are none
  std::function<void()> on_recorded{};  ///< changes may be taken that could not be before
};

/// What was delivered of which objects, across restarts and edits of Watchers: the journal, and
/// what is kept of Watchers that are gone. Makes records of what `observed_objects` tells, and has
/// the objects of new Watchers compared with what is remembered.
///
/// On one executor.
class delivery_record {
 public:
  /// `file` may be empty: there is no journal, and nothing is waited for. Of `writing` the record
  /// sets what the journal asks for.
  delivery_record(boost::asio::any_io_executor executor, std::string file,
                  journal_environment writing, delivery_record_environment environment);

  /// Reads what was delivered to whom before the start. Blocks. Once, before all else.
  void load();
  /// Keeps the time of writes, until it is cancelled.
  boost::asio::awaitable<void> run() { return journal_.run(); }
  /// Writes what the journal lacks.
  boost::asio::awaitable<void> flush() { return journal_.flush(); }

  // At a change of the Watchers, in this order.

  /// Remembers what was delivered of the objects of Watchers that are about to go.
  void keep_removed(const observation_plan& next);
  /// Has the first list of a new Watcher compared with what is remembered of it, and of those in
  /// whose place it comes. Calls `set_type` where their kind is known, and the Watcher's is not: it
  /// may never be served again, or have ended before it was found.
  void take(const managed_watch& added, const observation_plan& next,
            const std::function<void(const k8s::resource_type&)>& set_type);
  /// Events of the Watchers follow.
  void applied(const observation_plan& now);

  /// What the objects tell (`observed_objects::listeners::on_record`).
  void record(const dispatch::observed_objects::table& of, std::string_view key,
              dispatch::state_hash delivered, core::time_point now);
  void record_gap(const std::string& manager, const gap_counts& now) { journal_.gap(manager, now); }
  /// KCP knows of a begin without a complete journal.
  void reported();

  /// `journal::state`; "missing" also where a former process without a complete one reported
  /// nothing.
  std::string_view state() const noexcept;

 private:
  void drop(const managed_watch& of, std::uint32_t number, bool lost);
  template <typename Writer>
  void define(const dispatch::observed_objects::table& of, Writer& to);
  void write_all(const record_writer& to);
  void on_written();

  const bool has_file_;
  const delivery_record_environment environment_;
  journal journal_;
  kept_objects kept_;                 ///< of Watchers that are not there
  std::vector<std::string> defined_;  ///< kinds of tables in the journal, by number
  std::deque<std::pair<journal::position, core::time_point>> unwritten_;  ///< by time
  bool is_first_plan_ = true;   ///< no event was sent before
  bool began_without_ = false;  ///< a complete journal, this process or one that reported nothing
  bool unreported_ = false;     ///< likewise, and KCP does not know
};

}  // namespace rw::observation
