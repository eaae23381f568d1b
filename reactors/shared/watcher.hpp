#pragma once

#include "rw/core/text_error.hpp"
#include "rw/k8s/objects/label_selector.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/json/value.hpp>
#include <boost/system/result.hpp>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace rw {

/// The part of an object that is watched for changes.
/// Reason of a Watcher whose fields have invalid values, in its condition and elsewhere.
inline constexpr std::string_view watcher_invalid = "Invalid";

enum class watched_field : std::uint8_t { spec, status };

/// Returns the name in a Watcher: "spec", "status".
std::string_view to_string(watched_field field) noexcept;

/// A Watcher (operator.kyma-project.io/v1beta2): the resource to watch on every runtime cluster,
/// and the service in the control plane that receives its events. The typed view of a valid one;
/// its content is safe in URLs, webhook rules and host names.
struct watcher {
  struct resource {
    std::string group;    ///< empty: the core group; "*": all that have `plural`, with the labels
    std::string version;  ///< "*": all of them
    std::string plural;   ///< "kymas"; "*": all of the group, of those with the labels
    /// For instance "scale": each operation on it is an event. Empty: the resource itself, or the
    /// part `field`.
    std::string subresource = {};

    auto operator<=>(const resource&) const = default;
  };
  struct service {
    std::string ns;
    std::string name;
    std::uint16_t port = 0;

    friend bool operator==(const service&, const service&) = default;
  };

  k8s::object_key key;
  std::string uid;
  std::int64_t generation = 0;
  std::chrono::system_clock::time_point created = {};  ///< the epoch: not known

  std::string manager;  ///< spec.manager, or else the label managed-by: an element of URL paths
  resource watched;
  std::map<std::string, std::string> labels;  ///< of watched objects; empty: all of them
  watched_field field = watched_field::spec;
  service receiver;
  k8s::label_selector gateways;  ///< the Gateways that receive the events
};

/// Reads a Watcher as the API returns it. Relies on no check of a CustomResourceDefinition. The
/// error has all errors, separated by "; ": one sentence for each field, which names the field, its
/// value and the allowed values.
boost::system::result<watcher, core::text_error> read_watcher(const boost::json::value& object);

/// Suffix of the names of this project's webhooks.
inline constexpr std::string_view webhook_suffix = ".operator.kyma-project.io";
/// Returns a Watcher's webhook name: "<namespace>.<name>.operator.kyma-project.io".
std::string webhook_name(const k8s::object_key& watcher);

/// The annotation of a Watcher's VirtualService with the Watcher's last valid content
/// (`last_valid_text`). With it an invalid edit removes no webhook from the runtimes, even after a
/// restart of the manager.
inline constexpr std::string_view last_valid_annotation =
    "operator.kyma-project.io/last-valid-watcher";

/// Returns, as JSON, the fields that `read_watcher` reads besides the object's identity: spec, and
/// the label that names the manager.
std::string last_valid_text(const boost::json::value& watcher);

/// Returns the Watcher with its last valid content, from its VirtualService (null: there is none).
/// Nothing: it was never valid, or the VirtualService belongs to an earlier Watcher of its name.
std::optional<watcher> last_valid_watcher(const boost::json::value& object,
                                          const boost::json::value& virtual_service);

}  // namespace rw
