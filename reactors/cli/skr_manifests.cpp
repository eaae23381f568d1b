#include "reactors/cli/skr_manifests.hpp"

#include "k8s/devserver/builtin_rules.hpp"
#include "k8s/devserver/kinds.hpp"
#include "k8s/manifests.hpp"
#include "k8s/types.hpp"
#include "reactors/cli/settings.hpp"

#include <exception>
#include <utility>
#include <vector>

namespace rw::cli {
namespace {

namespace devserver = k8s::devserver;
namespace json = boost::json;

watcher_installer::inputs sample() {
  watcher one;
  one.key = {"kcp-system", "sample"};
  one.manager = "sample";
  one.watched = {"operator.kyma-project.io", "*", "kymas"};
  one.labels = {{"operator.kyma-project.io/watched-by", "kyma"}};
  const std::string since = "2000-01-01T00:00:00Z";
  return {.address = {"kcp.example.com", 443},
          .ca_bundle = "sample",
          .bundle_since = since,
          .certificate = "sample",
          .key = "sample",
          .certificate_since = since,
          .restart_trigger = "1",
          .watchers = {one}};
}

/// Why an API server would not have the object; empty if it would.
std::string problem_of(json::value object) {
  const auto type = k8s::well_known_type(k8s::find_string(object, {"apiVersion"}),
                                         k8s::find_string(object, {"kind"}));
  const auto kind = devserver::find_builtin(type->gvk.group, type->plural);
  if (!kind) return {};
  auto why = devserver::builtin_misfit(*kind, object);
  if (!why.empty()) return why;
  devserver::fill_builtin_defaults(*kind, object);
  std::vector<devserver::cause> found;
  devserver::check_builtin(*kind, nullptr, object, found);
  for (const auto& one : found) why += (why.empty() ? "" : "; ") + one.field + ": " + one.message;
  return why;
}

std::string name_of(const json::value& object) {
  return std::string(k8s::find_string(object, {"kind"})) + " " + k8s::key_of(object).name;
}

}  // namespace

watcher_installer::templates load_skr_manifests(const std::string& directory,
                                                const watcher_installer::settings& with) {
  auto manifests = watcher_installer::templates::load(directory);
  if (!manifests) throw setting_error("--skr-manifests: " + manifests.error().message);
  const auto wrong = [&](const std::string& why) {
    return setting_error("--skr-manifests: " + directory + ": " + why);
  };
  std::vector<json::value> objects;
  try {
    objects = watcher_installer::render(*manifests, with, sample());
  } catch (const std::exception& error) {
    throw wrong(std::string("can't be filled in: ") + error.what());
  }
  for (auto& one : objects) {
    auto text = name_of(one) + ": ";
    const auto why = problem_of(std::move(one));
    if (!why.empty()) throw wrong(text.append(why));
  }
  return std::move(*manifests);
}

}  // namespace rw::cli
