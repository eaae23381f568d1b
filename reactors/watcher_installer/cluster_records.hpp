#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/reactors/shared/cluster_state.hpp"

#include <boost/asio/awaitable.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rw::watcher_installer {

/// What a new leader must know of a runtime and can read nowhere else: no other object says it, and
/// nothing that is kept on the runtime is trusted.
struct cluster_record {
  std::vector<std::string> clusters = {};  ///< that the Kyma owns (cluster_owners.hpp)
  /// Since when the runtime has not converged through a fault of its own, in whole seconds.
  std::optional<cluster_error> fault = {};

  friend bool operator==(const cluster_record&, const cluster_record&) = default;
};

/// By the uid of the Kyma: one that is created again inherits nothing.
using cluster_record_map = std::unordered_map<std::string, cluster_record>;

/// Number of objects that the records are spread over, so that a change rewrites a small part.
inline constexpr std::size_t record_slots = 16;
std::size_t record_slot(std::string_view uid) noexcept;
std::string record_name(std::size_t slot);
inline constexpr std::string_view records_key = "clusters";  ///< of their Secrets

/// Returns the line of one runtime: uid, clusters, and if it fails since when and why.
std::string render_record(std::string_view uid, const cluster_record& record);
/// Reads lines; those that are damaged are skipped.
cluster_record_map parse_records(std::string_view text);

/// Keeps the records in KCP, for the next leader: 16 Secrets in a namespace that holds nothing but
/// this project's state.
///
/// A Secret that is damaged or deleted is written again from what this process knows, at most four
/// `interval`s later. While they can't
/// be read or written, for want of a right, all else goes on, as if there were no records: the
/// older of two Kymas owns their cluster, and faults begin with this leader. That is a warning, and
/// the gauge `rw_watcher_installer_records_not_kept`.
///
/// Single executor. The client is fenced: a deposed leader writes nothing.
class cluster_records {
 public:
  struct environment {
    core::clock& clock;
    core::logger& log;
    core::metrics& metrics;
    core::random_source random;
  };

  /// `interval`: between two writes of a Secret, at least. `kcp` must outlive it.
  cluster_records(k8s::client& kcp, std::string ns, core::duration interval, environment in);

  /// Reads all records. Tries until it is known what there is, or that reading is not allowed.
  boost::asio::awaitable<cluster_record_map> load();

  /// Runs until cancelled: writes the Secrets whose content has changed. `visit` calls back with
  /// each existing runtime.
  using visitor = std::function<void(std::string_view uid, const cluster_record&)>;
  boost::asio::awaitable<void> keep(std::function<void(const visitor&)> visit);

  /// Records may have changed.
  void changed() noexcept { changed_ = true; }

  /// Since when they can't be read or written; nothing: they can.
  std::optional<std::chrono::system_clock::time_point> not_kept_since() const noexcept {
    return not_kept_since_;
  }

 private:
  struct slot {
    std::string resource_version = {};  ///< empty: the Secret does not exist
    std::string text = {};              ///< stored
  };

  boost::asio::awaitable<k8s::result<void>> read(std::size_t number);
  boost::asio::awaitable<k8s::result<void>> write(std::size_t number, std::string text);
  boost::asio::awaitable<k8s::result<void>> check_some();
  boost::asio::awaitable<k8s::result<void>> write_changed(
      std::function<void(const visitor&)> visit);
  void set_error(const std::optional<k8s::failure>& error);

  k8s::client& kcp_;
  const std::string ns_;
  const core::duration interval_;
  const environment environment_;
  core::gauge& not_kept_;
  std::array<slot, record_slots> slots_;
  std::size_t next_check_ = 0;
  bool changed_ = true;
  std::optional<std::chrono::system_clock::time_point> not_kept_since_;
};

}  // namespace rw::watcher_installer
