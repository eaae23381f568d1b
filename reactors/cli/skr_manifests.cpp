#include "rw/reactors/cli/skr_manifests.hpp"

#include "rw/reactors/cli/settings.hpp"

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

}  // namespace rw::cli
