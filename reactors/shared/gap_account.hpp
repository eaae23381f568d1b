#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace rw {

/// Gaps of one manager: changes of which it was sent no event, and will be sent none.
struct gap_counts {
  std::uint64_t raised = 0;  ///< number of gaps
  std::uint64_t told = 0;    ///< how many of them the manager has learned of; at most `raised`

  bool outstanding() const noexcept { return raised != told; }
  friend bool operator==(const gap_counts&, const gap_counts&) = default;
};

/// Counts the gaps of each manager, so that a change that is neither delivered nor waiting is not
/// forgotten. The numbers outlast the process in a journal, as a series with an id of its own: of
/// two heartbeats of one series the counts are comparable, whatever restarted between them.
///
/// The empty name stands for all managers. It takes the gaps of names that are no `is_path_segment`
/// and of those beyond the first 255. A value; not thread-safe.
class gap_account {
 public:
  /// Called after each change of a manager's counts.
  using observer = std::function<void(const std::string& manager, const gap_counts& now)>;

  /// `series`: random, or the journal's.
  explicit gap_account(std::string series, observer on_change = {})
      : series_(std::move(series)), on_change_(std::move(on_change)) {}

  /// Counts one more gap of the manager.
  void raise(const std::string& manager);

  /// The manager has learned of its gaps up to that number of `raised`. A lower number than before
  /// changes nothing.
  void told(const std::string& manager, std::uint64_t raised);

  /// Continues a series: adds what the journal says of a manager, without a call of the observer.
  /// Gaps raised before are kept as later ones.
  void restore(const std::string& manager, const gap_counts& stored);
  void restore_series(std::string series) { series_ = std::move(series); }

  const std::string& series() const noexcept { return series_; }
  /// By manager; only those with gaps. At most `max_managers`.
  const std::map<std::string, gap_counts>& counts() const noexcept { return counts_; }
  /// Number of gaps raised, without those restored: it does not decrease while the process runs.
  std::uint64_t raised() const noexcept { return raised_; }

  static constexpr std::size_t max_managers = 256;  ///< the empty name included

 private:
  std::map<std::string, gap_counts>::iterator use(const std::string& manager);

  std::string series_;
  observer on_change_;
  std::map<std::string, gap_counts> counts_;
  std::uint64_t raised_ = 0;
};

}  // namespace rw
