#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/wake.hpp"
#include "rw/reactors/observation/journal_format.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace rw::observation {

/// The references must outlive the journal.
struct journal_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
  std::string boot_id;  ///< of the node; empty: not known, no journal is complete
  /// Writes all watches, objects and gaps as they are: called when the file is written whole.
  std::function<void(const record_writer&)> write_all = {};
  std::function<void()> on_written = {};  ///< `written` has increased
  /// Where the file is written, which blocks. None: a thread of its own.
  boost::asio::any_io_executor blocking = {};
};

/// The journal's file. Records that come within one turn of the executor, or within 5 ms of a
/// write, are one write: under load a wake of the thread for each would cost more than all else. A
/// delivery alone is written 100 ms later, with what has come meanwhile: if the process ends
/// before, it is repeated. Nothing is synchronized to the disk: what is written survives the
/// process, and the boot id tells whether it survived the node.
///
/// The first write replaces the file by what `all` writes, so `load` and take over its content
/// before. A file of more than 1 MiB that has doubled is compacted, from its own content; records
/// wait meanwhile.
///
/// A record that is not written within 100 ms is not waited for: the journal has failed until a
/// write ends. If the process ends before, the next start does not notice that records are missing.
/// After a failed write, or with 4 MiB of records waiting, the file is removed, and the next start
/// notices it; it is written whole again after 1 s, then 2 s, up to a minute.
///
/// Metrics: `rw_observation_journal_writes_total{outcome}` (written, failed),
/// `rw_observation_journal_bytes`.
///
/// On one executor.
class journal {
 public:
  /// In the sequence of records; increases.
  using position = std::uint64_t;

  /// `file` may be empty: there is none, and nothing is waited for.
  journal(boost::asio::any_io_executor executor, std::string file, journal_environment environment);
  /// Waits for a write that is under way, for a second at most: then the disk does not respond, and
  /// the thread is left to itself. Records without a write are lost: `flush` before.
  ~journal();
  journal(const journal&) = delete;
  journal& operator=(const journal&) = delete;

  /// Reads the file, and logs what makes it incomplete, but for a missing one. Blocks. The series
  /// of a complete one goes on, otherwise it is new.
  journal_content load();
  /// Keeps the time of writes, until it is cancelled.
  boost::asio::awaitable<void> run();

  // Each appends a record, and returns the position after it. For their meaning see record_writer.

  position watch(const managed_watch& watch, const journal_content::objects& objects) {
    return appended_at_once(next_.watch(watch, objects));
  }
  position watch(std::uint32_t number, const managed_watch& watch, const k8s::resource_type& type) {
    return appended_at_once(next_.watch(number, watch, type));
  }
  position unwatch(std::uint32_t number) { return appended_at_once(next_.unwatch(number)); }
  position left(std::uint32_t number, std::string_view key) {
    return appended_at_once(next_.left(number, key));
  }
  /// unknown_mark says that it left, too.
  position told(std::uint32_t number, std::string_view key, state_hash delivered) {
    const auto buffered = next_.told(number, key, delivered);
    return delivered == unknown_state ? appended_at_once(buffered) : appended(buffered);
  }
  position gap(std::string_view manager, gap_counts counts) {
    return appended_at_once(next_.gap(manager, counts));
  }

  /// Returns up to where records are in the file, or not waited for.
  position written() const noexcept { return failed_ ? begin_ + buffer_.size() : written_; }
  /// Has what was appended written, and waits until that is done or not waited for. Returns early
  /// if cancelled.
  boost::asio::awaitable<void> flush();

  /// Returns "none" (no file), "failed" (it misses records), "read" (it had content at the start)
  /// or "missing".
  std::string_view state() const noexcept;

 private:
  enum class task : std::uint8_t { append, compact, replace, restore };
  struct disk;

  position appended(std::size_t buffered);
  position appended_at_once(std::size_t buffered);
  void arm();
  core::time_point overdue_at() const;
  void post(void (journal::*call)());
  void poll();
  void begin_write();
  void end_write(task ended, const std::string& error, std::size_t size);
  void drop();
  void fail(std::string_view reason);
  void notify();

  const boost::asio::any_io_executor executor_;
  const std::string file_;
  journal_environment environment_;
  core::counter& writes_;
  core::counter& failures_;
  core::gauge& bytes_;
  core::log_limit log_limit_;
  std::string series_;
  std::string buffer_;  ///< records without a write
  const record_writer next_{buffer_};
  position begin_ = 0;    ///< of the buffer
  position writing_ = 0;  ///< up to where the write under way, or the latest one, has records
  position written_ = 0;
  /// The buffer's first record that is to be written at once.
  core::time_point buffered_at_ = core::time_point::max();
  core::time_point due_ = core::time_point::max();         ///< when the others are to be written
  core::time_point writing_at_ = core::time_point::max();  ///< the first record of the write
  core::time_point paused_until_ = core::time_point::min();
  core::time_point retry_at_ = core::time_point::min();
  unsigned failed_writes_ = 0;  ///< in succession
  std::size_t size_ = 0;        ///< of the file
  std::size_t compacted_ = 0;   ///< its size when it was written whole
  bool busy_ = false;           ///< a write is under way
  bool rewrite_ = true;         ///< the file is to be written whole
  bool failed_ = false;
  bool was_read_ = false;
  const std::unique_ptr<core::timer> timer_;
  core::time_point awake_at_ = core::time_point::max();  ///< the timer's
  core::wake_list advanced_;
  std::shared_ptr<journal*> self_ = std::make_shared<journal*>(this);  ///< what is posted finds it
  std::shared_ptr<disk> disk_;
  std::thread thread_;
};

}  // namespace rw::observation
