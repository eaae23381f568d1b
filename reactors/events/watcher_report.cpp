#include "rw/reactors/events/watcher_report.hpp"

#include "rw/tls/ca_bundle.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace rw::webhook {
namespace {

watch_report of_reviews(const managed_watch& watch) {
  watch_report out{watch.manager, watch.watched.group, watch.watched.plural, watch.field};
  out.reason = "the source is webhook";
  return out;
}

std::vector<operator_losses> losses_of(const dispatch::delivery& from) {
  std::vector<operator_losses> out;
  for (const auto& [manager, count] : from.losses()) out.push_back({manager, count});
  return out;
}

refused_event reported(const dispatch::rejected_event& from, core::duration oldest_other) {
  const auto& [event, status] = from;
  return {.manager = event.manager,
          .status = status,
          .group = event.gvk.group,
          .kind = event.gvk.kind,
          .ns = event.watched.ns,
          .name = event.watched.name,
          .oldest_other = std::chrono::ceil<std::chrono::milliseconds>(oldest_other)};
}

void describe(const tls::material& from, heartbeat& to) {
  if (from.ca()) to.ca_digest = tls::ca_bundle(from.ca()->anchors()).digest();
  if (!from.leaf()) return;
  to.certificate_not_after = from.leaf()->not_after();
  to.certificate_digest = from.leaf()->fingerprint();
}

}  // namespace

heartbeats::watcher_report watcher_report_of(const report_sources& from) {
  heartbeats::watcher_report out;
  const auto dispatch = from.dispatcher.statistics();
  const auto admission = from.webhook.statistics();
  const auto observed = from.observation != nullptr ? from.observation->statistics()
                                                    : observation::observation_statistics{};
  out.delivery_time = dispatch.counts.delivery_time;
  out.upstream_open = dispatch.upstream_open;
  auto& content = out.content;
  content.version = from.version;
  content.events = {.accepted = admission.events,
                    .delivered = dispatch.counts.delivered,
                    .overflowed = dispatch.counts.overflowed + admission.overflowed,
                    .rejected = dispatch.counts.rejected,
                    .not_persisted = observed.not_persisted,
                    .resyncs = dispatch.counts.resyncs,
                    .abandoned = from.abandoned};
  content.oldest_undelivered = std::chrono::ceil<std::chrono::milliseconds>(dispatch.oldest);
  content.oldest_manager = dispatch.oldest_manager;
  if (dispatch.refused) content.refused = reported(*dispatch.refused, dispatch.oldest_other);
  if (from.delivery != nullptr) content.losses = losses_of(*from.delivery);
  if (from.material != nullptr) describe(*from.material, content);
  content.pod = from.pod;
  content.source = "webhook";
  const auto managers = from.managers != nullptr ? from.managers->current() : nullptr;
  if (managers) content.managers_digest = from.managers->digest();
  const auto watches = managers ? std::span(managers->watches()) : std::span<const managed_watch>();
  for (const auto& watch : watches.first(std::min(watches.size(), max_heartbeat_watches))) {
    content.watches.push_back(from.observation != nullptr ? from.observation->report_of(watch)
                                                          : of_reviews(watch));
    if (content.watches.back().state != watch_state::unobserved) content.source = "both";
  }
  content.more_watches = watches.size() - content.watches.size();
  return out;
}

}  // namespace rw::webhook
