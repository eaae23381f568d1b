#pragma once

#include "k8s/names.hpp"
#include "reactors/bootstrapper/problem.hpp"

#include <boost/json/value.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::bootstrapper {

/// What an object on a runtime comes from.
enum class part : std::uint8_t { trust_bundle, pull_secret, configuration, manifests };
inline constexpr std::array all_parts = {part::trust_bundle, part::pull_secret, part::configuration,
                                         part::manifests};
/// As the status names it: "trustBundle", "pullSecret", "config", "manifests".
std::string_view to_string(part of) noexcept;
std::optional<part> parse_part(std::string_view text) noexcept;

/// On everything that is applied to a runtime: who did it.
inline constexpr std::string_view synced_by_label = "operator.kyma-project.io/synced-by";
inline constexpr std::string_view synced_by = "runtime-watcher";

/// What things are called on a runtime.
struct target_names {
  std::string ns = "kyma-system";
  std::string configuration = "rt-bootstrapper-config";
  std::string pull_secret = "registry-credentials";
  std::string trust_bundle = {};  ///< empty: as in the control plane

  friend bool operator==(const target_names&, const target_names&) = default;
};

/// One of the sources in the control plane.
struct source {
  std::string name = {};           ///< for people: "ConfigMap kcp-system/rt-bootstrapper-config"
  bool asked_for = false;          ///< the spec refers to one
  boost::json::value object = {};  ///< null: it is not there
  std::string text = {};           ///< of manifests: the YAML; nothing if `object` is null
};

struct sources_of_set {
  source trust_bundle = {};
  source pull_secret = {};
  source configuration = {};
  source manifests = {};
  /// What becomes, on the runtime, of a source that is asked for and not there: it is removed, or
  /// stays as it was.
  bool remove_missing = false;
};

struct desired_object {
  part from = part::manifests;
  boost::json::value object = {};
};

/// What a runtime is to have, as far as the control plane knows it.
struct desired_set {
  std::vector<desired_object> objects = {};
  std::vector<part> kept = {};  ///< these stay as the runtime has them
  /// Where the configuration stands, for people; empty: it is kept, or there is none.
  std::string configured_by = {};
};

/// Checks what stands in the control plane, each source by itself, and makes of it the objects that
/// a runtime is to have. An object of the manifests that has the name of another source's target
/// gives way to it. Everything that is wrong is added to `wrong`; the result is then of no use.
desired_set gather(const sources_of_set& from, const target_names& to,
                   std::chrono::system_clock::time_point now, problems& wrong);

/// Checks what only the whole can tell: the configuration names features that the version knows,
/// and the trust bundle that is there. `objects`: with those that are kept. `configured_by`: see
/// desired_set.
void check_whole(const std::vector<desired_object>& objects, const target_names& to,
                 const std::string& configured_by, problems& wrong);

/// Of the objects whatever their order and that of their fields (content_digest.hpp).
std::string digest_of(const std::vector<desired_object>& objects);
std::string digest_of(const boost::json::value& object);
/// Enough of a digest for people, and for names.
std::string short_digest(std::string_view digest);

/// The features that a configuration names and a version does not know.
std::vector<std::string> unknown_features(const std::vector<desired_object>& objects,
                                          const target_names& to,
                                          const std::vector<std::string>& known);

}  // namespace rw::bootstrapper
