#pragma once

#include "rw/core/metrics.hpp"
#include "rw/k8s/cache/watch_decoder.hpp"
#include "rw/k8s/objects/names.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace rw::k8s {

/// The metrics of one informer, with the label `resource`; informers of the same resource add up.
class informer_metrics {
 public:
  enum class watch_end : std::uint8_t { ended, empty, expired, refused, broken, silent, bad_event };
  enum class phase : std::uint8_t { probe, list, watch, decode };

  informer_metrics(core::metrics& registry, const resource_type& type);
  ~informer_metrics();
  informer_metrics(const informer_metrics&) = delete;
  informer_metrics& operator=(const informer_metrics&) = delete;

  /// Cheap: counted, and told to the registry by `report`.
  void event(decoded_event::kind kind) noexcept { ++unreported_[static_cast<std::size_t>(kind)]; }
  void list() { lists_->Increment(); }
  void watch(watch_end ending) { watches_[static_cast<std::size_t>(ending)]->Increment(); }
  void failure(phase phase) { failures_[static_cast<std::size_t>(phase)]->Increment(); }

  void report(std::size_t objects, std::size_t pending);

 private:
  static void move(core::gauge& gauge, std::size_t& from, std::size_t to);

  std::array<core::counter*, 5> events_{};
  std::array<std::uint32_t, 5> unreported_{};
  core::counter* lists_;
  std::array<core::counter*, 7> watches_{};
  std::array<core::counter*, 4> failures_{};
  core::gauge* objects_;
  core::gauge* pending_;
  std::size_t reported_objects_ = 0;
  std::size_t reported_pending_ = 0;
};

}  // namespace rw::k8s
