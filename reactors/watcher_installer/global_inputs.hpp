#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/reactors/shared/definition.hpp"
#include "rw/reactors/shared/status_reason.hpp"
#include "rw/reactors/shared/watcher_set.hpp"
#include "rw/reactors/watcher_installer/render.hpp"
#include "rw/tls/ca_bundle.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rw::watcher_installer {

/// Where the inputs of all runtimes are in KCP.
struct input_names {
  std::string gateway = {};          ///< in kcp-system
  std::string istio_namespace = {};  ///< of the gateway's Secret
  std::optional<std::uint16_t> port = {};
};

/// The CAs of a gateway's Secret that does not exist, where a dry run plans it. Empty: none does.
using foreseen_trust = std::function<std::optional<tls::ca_bundle>()>;

/// Why an input is not valid now.
struct input_error {
  status_reason reason = status_reason::none;
  std::string message = {};  ///< what is wrong, and what runtimes keep
  std::chrono::system_clock::time_point since = {};
  bool has_value = false;  ///< the last valid value is in use
};

/// What KCP says for all runtimes alike: the address that events go to, the CAs of the gateway, and
/// the Watchers. An invalid or deleted one keeps its last valid value, so that repairs continue,
/// with that; a Watcher does so if it went with the definition of its kind. It is kept in memory:
/// where a process has seen no valid value it can install nothing, and removes nothing either; of
/// Watchers that went before it began the runtimes keep what they have (`unknown_webhooks`).
///
/// Single executor. What it reads must outlive it.
class global_inputs {
 public:
  using time_point = std::chrono::system_clock::time_point;

  /// `foreseen`: the CAs that the gateway's Secret is to have while there is none.
  global_inputs(const k8s::informer& gateways, const k8s::informer& gateway_secrets,
                const k8s::informer& watchers, const k8s::informer& virtual_services,
                foreseen_trust foreseen, input_names names, core::clock& clock);

  /// Reads what has changed. Returns a number that grows whenever other values are in force.
  std::uint64_t refresh();

  /// Errors of them; one without a last valid value first.
  std::vector<input_error> errors() const;

  /// Watchers that are gone but still in force, since it is not known whether they went with the
  /// definition of their kind, or they did.
  std::vector<watcher> gone() const;
  /// Why that one is gone. One that went with its definition is in force until it is there again,
  /// or until `patience` after a definition is.
  void explain_gone(const k8s::object_key& watcher, definition_state definition,
                    core::duration patience);

  /// Ends the time in which runtimes keep what they have of Watchers that this process has never
  /// seen: those may have gone with a definition, which is young or not there, before it began.
  void end_unknown();
  bool keeps_unknown() const noexcept { return seen_ != nullptr; }
  /// Whether a webhook of that name, which a runtime has, is of a Watcher that was not seen until
  /// now, and stays. Empty: none does.
  std::function<bool(std::string_view name)> unknown_webhooks() const;

  const std::optional<kcp_address>& address() const noexcept { return address_.value; }
  const std::optional<tls::ca_bundle>& trust() const noexcept { return trust_.value; }
  const std::vector<watcher>& watchers() const noexcept { return used_watchers_; }

 private:
  template <class T>
  struct last_valid {
    std::optional<T> value = {};
    std::optional<input_error> error = {};
    k8s::object from = {};  ///< that it was read from

    bool update(k8s::object now, in_words<T> read, status_reason reason, time_point at);
  };

  bool refresh_address();
  bool refresh_trust();
  bool refresh_watchers();
  bool exists(const k8s::object_key& watcher) const;
  std::vector<watcher> with_gone(std::vector<watcher> now) const;

  const k8s::informer& gateways_;
  const k8s::informer& gateway_secrets_;
  const foreseen_trust foreseen_;
  const input_names names_;
  core::clock& clock_;
  last_valid<kcp_address> address_;
  last_valid<tls::ca_bundle> trust_;
  struct gone_watcher {
    watcher last;
    std::chrono::system_clock::time_point since = {};
    std::optional<core::time_point> until = {};  ///< nothing: it is not known why it is gone
  };

  const k8s::informer& known_watchers_;
  watcher_set watchers_;
  std::vector<watcher> used_watchers_;  ///< at the latest `refresh`
  std::vector<gone_watcher> gone_;
  using names = std::set<std::string, std::less<>>;
  /// The webhooks of all Watchers that were seen, while unknown ones stay.
  std::shared_ptr<const names> seen_ = std::make_shared<const names>();
  std::uint64_t version_ = 0;
};

}  // namespace rw::watcher_installer
