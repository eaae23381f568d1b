#include "rw/reactors/cli/skr_manifests.hpp"

#include "rw/core/config.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/settings.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>

#include <exception>
#include <utility>

namespace rw::cli {
namespace {

watcher_installer::inputs sample() {
  watcher watcher;
  watcher.key = {"kcp-system", "sample"};
  watcher.manager = "sample";
  watcher.watched = {"operator.kyma-project.io", "*", "kymas"};
  watcher.labels = {{"operator.kyma-project.io/watched-by", "kyma"}};
  const std::string since = "2000-01-01T00:00:00Z";
  return {.address = {"kcp.example.com", 443},
          .ca_bundle = "sample",
          .bundle_since = since,
          .certificate = "sample",
          .key = "sample",
          .certificate_since = since,
          .restart_trigger = "1",
          .watchers = {watcher}};
}

}  // namespace

watcher_installer::templates load_skr_manifests(const std::string& directory,
                                                const watcher_installer::manifest_settings& with) {
  auto manifests = watcher_installer::templates::load(directory);
  if (!manifests) throw setting_error("--skr-manifests: " + manifests.error().message);
  try {
    watcher_installer::render(*manifests, with, sample());
  } catch (const std::exception& error) {
    throw setting_error("--skr-manifests: " + directory + ": can't be filled in: " + error.what());
  }
  return std::move(*manifests);
}

std::chrono::milliseconds heartbeat_interval_of(const watcher_installer::templates& manifests) {
  const auto standard = webhook_settings().heartbeat_interval;
  for (const auto& object : manifests.objects()) {
    if (!watcher_installer::is(object, "Deployment", skr_webhook_name)) continue;
    const auto* const all = k8s::find_array(object, {"spec", "template", "spec", "containers"});
    if (all == nullptr) continue;
    for (const auto& container : *all) {
      const auto* const env = k8s::find_array(container, {"env"});
      if (env == nullptr) continue;
      for (const auto& variable : *env) {
        if (k8s::find_string(variable, {"name"}) != "HEARTBEAT_INTERVAL") continue;
        return core::parse_duration(k8s::find_string(variable, {"value"})).value_or(standard);
      }
    }
  }
  return standard;
}

}  // namespace rw::cli
