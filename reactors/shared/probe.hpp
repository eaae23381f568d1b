#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rw {

// A probe proves the way of events without side effects: the manager asks a runtime's API server
// for a dry run of creating a ConfigMap with `probe_label` in kyma-system. The API server calls a
// webhook of the configuration that exists for this, with the path `/validate/runtime-watcher`; the
// watcher responds with a warning, and the next heartbeat names the probe.

/// On the ConfigMap of a probe, with the value "true".
inline constexpr std::string_view probe_label = "operator.kyma-project.io/watcher-probe";
/// The ConfigMap's name is this, and the nonce.
inline constexpr std::string_view probe_prefix = "watcher-probe-";

/// The name of the webhook that the API server calls for it.
inline constexpr std::string_view probe_webhook =
    "kyma-system.watcher-probe.operator.kyma-project.io";

/// Returns the nonce in the name of a probe's ConfigMap, 16 hexadecimal digits; empty if it is
/// another name, which any client on the runtime may have made up.
std::string_view probe_nonce(std::string_view name) noexcept;

/// What a watcher knows of its way to KCP, when it is probed.
struct probe_report {
  std::string nonce = {};
  std::string boot_id = {};
  std::uint64_t undelivered = 0;  ///< number of events
  std::chrono::milliseconds oldest{0};
  std::string upstream = {};  ///< why the latest request to KCP failed; empty: it did not

  friend bool operator==(const probe_report&, const probe_report&) = default;
};

/// Returns the warning, of at most 250 bytes: API servers may truncate longer ones (Kubernetes,
/// "Dynamic Admission Control", "Response"). The error is shortened, and has spaces for control
/// characters and quotes.
std::string render_probe_report(const probe_report& from);

/// Reads a warning; nothing if it is another one. The runtime's owner may have made it up.
std::optional<probe_report> parse_probe_report(std::string_view warning);

}  // namespace rw
