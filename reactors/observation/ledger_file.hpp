#pragma once

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "reactors/observation/ledger.hpp"
#include "reactors/observation/observed_objects.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace rw::observation {

/// All of it must outlive the file.
struct ledger_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  /// Where the file is written, which blocks. None: a thread of its own for each write.
  boost::asio::any_io_executor blocking = {};
};

/// The ledger of a set of objects: reads it at the start, and writes it when it has changed. The
/// objects are encoded in slices, between which others run; one write is under way at a time.
///
/// Metric: `rw_observation_ledger_writes_total{outcome}` (written, failed).
///
/// On one executor.
class ledger_file {
 public:
  /// `objects` must outlive it. `file` may be empty: there is none.
  ledger_file(boost::asio::any_io_executor executor, std::string file,
              const observed_objects& objects, ledger_environment environment);
  /// Waits for a write that is under way, for a second at most: then the disk does not respond, and
  /// the write's thread is left to itself.
  ~ledger_file();
  ledger_file(const ledger_file&) = delete;
  ledger_file& operator=(const ledger_file&) = delete;

  /// Reads the file; one that is not usable is logged, and is a ledger without objects.
  ledger_content load();
  /// The objects are as the file has them.
  void set_current() noexcept { saved_ = objects_.version(); }

  /// Returns true if the objects have changed, the pause after the latest write has ended, and no
  /// `save` is under way. The pause is so long that writes take less than 1 % of the time, but not
  /// longer than a minute.
  bool due(core::time_point now) const;
  /// Writes the file unless the objects have not changed, after a write that is under way. One call
  /// at a time. Cancelled it leaves the file as it is, or lets the write end; it is not due again.
  boost::asio::awaitable<void> save();

  /// As `observation_statistics::ledger`.
  std::string_view state() const noexcept;

 private:
  struct disk;
  struct write;

  boost::asio::awaitable<bool> write_ended();
  void begin_write(std::string bytes, std::uint64_t version, core::time_point begin);
  void end_write(const std::string& error, std::uint64_t version, core::time_point begin);

  const boost::asio::any_io_executor executor_;
  const std::string file_;
  const observed_objects& objects_;
  const ledger_environment in_;
  core::counter& written_;
  core::counter& failed_;
  core::log_limit log_limit_;
  std::uint64_t saved_ = 0;  ///< version of the objects in the file
  core::time_point not_before_ = core::time_point::min();
  bool encoding_ = false;
  bool was_read_ = false;
  bool fails_ = false;            ///< the latest write did
  std::shared_ptr<write> write_;  ///< that is under way
  std::shared_ptr<disk> disk_;
  std::thread thread_;  ///< of the latest write
};

}  // namespace rw::observation
