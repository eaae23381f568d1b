// The manager's view of its runtimes for a process that contains it.

#include "reactors/cli/manager_app.hpp"
#include "reactors/cli/runtimes_view.hpp"

#include <utility>

namespace rw::cli {

void manager_app::for_each_runtime(const std::function<void(const runtime_summary&)>& visit) const {
  kymas_.objects().for_each([&](const k8s::object& kyma) {
    auto key = kyma.key();
    const auto* const status = installer_->runtimes().find(key);
    const auto* const beats = heartbeats_ ? heartbeats_->health().find(key) : nullptr;
    runtime_summary one{.kyma = std::move(key), .state = "unknown", .reason = {}};
    if (beats != nullptr) one.heartbeat = to_string(beats->state);
    if (status != nullptr && status->state) {
      one.state = to_string(*status->state);
      one.reason = status->reason;
      one.since = status->since;
    }
    if (one.reason.empty() && beats != nullptr) one.reason = beats->reason;
    visit(one);
  });
}

}  // namespace rw::cli
