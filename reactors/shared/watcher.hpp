#pragma once

#include "k8s/objects/label_selector.hpp"
#include "k8s/objects/names.hpp"

#include <boost/json/value.hpp>
#include <boost/system/result.hpp>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw {

/// Which part of an object is watched for changes.
enum class watched_field : std::uint8_t { spec, status };

/// As a Watcher writes it: "spec", "status".
std::string_view to_string(watched_field field) noexcept;

/// A Watcher (operator.kyma-project.io/v1beta2): which resource is watched on every runtime
/// cluster, and which service in the control plane is told of its changes. The typed view of a
/// valid one; what it holds may be put into URLs, webhook rules and host names as it is.
struct watcher {
  /// The watched objects' resource.
  struct resource {
    std::string group;    ///< empty: the core group
    std::string version;  ///< "*": all of them
    std::string plural;   ///< "kymas"; "*": all of the group, of those that carry the labels
    /// "scale", for instance: each operation on it is an event. Empty: the resource itself, or what
    /// `field` says.
    std::string subresource = {};

    auto operator<=>(const resource&) const = default;
  };
  /// Where the events go.
  struct service {
    std::string ns;
    std::string name;
    std::uint16_t port = 0;

    friend bool operator==(const service&, const service&) = default;
  };

  k8s::object_key key;
  std::string uid;
  std::int64_t generation = 0;

  std::string manager;  ///< spec.manager, or else the label managed-by: an element of URL paths
  resource watched;
  std::map<std::string, std::string> labels;  ///< that watched objects carry; empty: all of them
  watched_field field = watched_field::spec;
  service receiver;
  k8s::label_selector gateways;  ///< the Gateways that events come in through
};

/// Everything that is wrong with a Watcher: one sentence for each field, which names the field,
/// what it holds and what it may hold. Never empty.
struct watcher_problems {
  std::vector<std::string> sentences;

  /// All of them in one line.
  std::string text() const;
};

/// Reads a Watcher as the API writes it. Nothing is taken for granted that a
/// CustomResourceDefinition may or may not check.
boost::system::result<watcher, watcher_problems> read_watcher(const boost::json::value& object);

/// What ends the name of each of our webhooks.
inline constexpr std::string_view webhook_suffix = ".operator.kyma-project.io";
/// Of a Watcher: "<namespace>.<name>.operator.kyma-project.io".
std::string webhook_name(const k8s::object_key& watcher);

/// The annotation of a Watcher's VirtualService that keeps what the Watcher said when it was valid
/// last (`last_valid_text`). An edit to something invalid then takes no webhook off the runtimes,
/// after a restart of the manager either.
inline constexpr std::string_view last_valid_annotation =
    "operator.kyma-project.io/last-valid-watcher";

/// JSON of what `read_watcher` reads beside the object's identity: spec, and the label that names
/// the manager.
std::string last_valid_text(const boost::json::value& watcher);

/// The Watcher as it is; if it is invalid, as its VirtualService (null: there is none) remembers
/// it. None: it was never valid, or the VirtualService is that of another Watcher of its name.
std::optional<watcher> effective_watcher(const boost::json::value& object,
                                         const boost::json::value& virtual_service);

}  // namespace rw
