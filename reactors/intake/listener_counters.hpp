#pragma once

#include "rw/core/metrics.hpp"
#include "rw/reactors/intake/listener.hpp"

#include <array>
#include <string>

namespace rw::listener {

/// The metrics of a listener, as its class comment names them.
struct listener::counters {
  explicit counters(core::metrics& r)
      : registry(r),
        requests(core::make_counter(r, "watcher_listener_requests_total",
                                    "Number of requests to the listener", server())),
        errors(core::make_counter(r, "watcher_listener_request_errors_total",
                                  "Number of requests without a response of success", server())),
        in_flight(core::make_gauge(r, "watcher_listener_inflight_requests",
                                   "Number of requests under way", server())),
        last_duration(core::make_gauge(r, "watcher_listener_request_duration",
                                       "Duration of the latest request in seconds", server())),
        duration(
            core::make_histogram(r, "rw_listener_request_seconds",
                                 "Time from the end of the request to its response, in seconds", {},
                                 core::latency_bounds())),
        too_large(core::make_counter(r, "watcher_listener_exceeding_size_limit_requests_total",
                                     "Number of requests that were too large", server())),
        delivery(core::make_histogram(r, "rw_event_delivery_seconds",
                                      "Age of the oldest event of a request since its acceptance, "
                                      "as its sender states it, in seconds",
                                      {}, core::latency_bounds())),
        pending(core::make_gauge(r, "rw_listener_pending_events",
                                 "Number of accepted events that the channel has not taken")),
        in_channel(core::make_gauge(r, "rw_listener_channel_events",
                                    "Number of events in the channel after the latest was sent")),
        waited(core::make_histogram(r, "rw_listener_pending_seconds",
                                    "Time from the acceptance of an event until it is the next for "
                                    "the channel, in seconds",
                                    {}, core::latency_bounds())),
        coalesced(core::make_counter(r, "rw_listener_coalesced_events_total",
                                     "Number of accepted events that were pending already")),
        abandoned(core::make_counter(r, "rw_listener_abandoned_events_total",
                                     "Number of accepted events that were lost at the end")),
        resyncs_handed_over(resyncs("handed_over")),
        resyncs_merged(resyncs("merged")),
        share_full(rejected("share")),
        full(rejected("full")),
        closed(rejected("closed")) {
    for (const auto error : identity_errors) {
      unidentified[static_cast<std::size_t>(error)] = &core::make_counter(
          r, "rw_listener_unidentified_requests_total",
          "Number of requests whose sender is not known", {{"reason", std::string(label(error))}});
    }
  }

  static core::labels server() { return {{"server_name", "listener"}}; }
  core::counter& rejected(const std::string& reason) {
    return core::make_counter(registry, "rw_listener_rejected_events_total",
                              "Number of events rejected with 503", {{"reason", reason}});
  }
  core::counter& resyncs(const std::string& outcome) {
    return core::make_counter(registry, "rw_listener_resyncs_total",
                              "Number of accepted resyncs of runtimes, by outcome",
                              {{"outcome", outcome}});
  }
  core::counter& refused_by_verify(const std::string& path) {
    return core::make_counter(registry, "watcher_listener_failed_verification_requests_total",
                              "Number of events rejected by verification",
                              {{"server_name", "listener"}, {"request_uri_label", path}});
  }

  core::metrics& registry;
  core::counter& requests;
  core::counter& errors;
  core::gauge& in_flight;
  core::gauge& last_duration;
  core::histogram& duration;
  core::counter& too_large;
  core::histogram& delivery;
  core::gauge& pending;
  core::gauge& in_channel;
  core::histogram& waited;
  core::counter& coalesced;
  core::counter& abandoned;
  core::counter& resyncs_handed_over;
  core::counter& resyncs_merged;
  core::counter& share_full;
  core::counter& full;
  core::counter& closed;
  std::array<core::counter*, identity_errors.size() + 1> unidentified{};  ///< by the error, from 1
};

}  // namespace rw::listener
