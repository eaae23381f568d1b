#pragma once

#include <boost/json/fwd.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace rw {

/// How the Runtime Bootstrapper's configuration comes to a runtime: who writes it there. The modes
/// are the road from `signal`, where Kyma Infrastructure Manager (KIM) writes it, to `direct`,
/// where we do; it can be gone either way, for each runtime by itself.
enum class bootstrapper_mode {
  off,     ///< nobody is told and nothing is written
  signal,  ///< the Runtime is marked, and KIM writes
  shadow,  ///< as `signal`; what `direct` would write is computed and the difference reported
  direct,  ///< written to the runtime; the Runtime is not marked
};

std::string_view to_string(bootstrapper_mode mode);

/// Nothing if `text` names no mode.
std::optional<bootstrapper_mode> parse_bootstrapper_mode(std::string_view text);

/// On a Runtime: its mode, where it is not the manager's default.
inline constexpr std::string_view bootstrapper_mode_annotation =
    "operator.kyma-project.io/bootstrapper-mode";

/// The mode of one Runtime (any object with metadata). An annotation that names no mode is not
/// guessed at: the runtime is left alone (`off`), and `wrong`, if given, becomes true.
bootstrapper_mode mode_of(const boost::json::value& runtime, bootstrapper_mode by_default,
                          bool* wrong = nullptr);

/// Whether the Runtime is marked for KIM in this mode.
constexpr bool signals(bootstrapper_mode mode) noexcept {
  return mode == bootstrapper_mode::signal || mode == bootstrapper_mode::shadow;
}

/// What is kept in step on all runtimes: these objects in KCP, in `kcp_namespace`.
struct bootstrapper_sources {
  std::string config = "rt-bootstrapper-config";              ///< ConfigMap
  std::string manifests = "runtime-bootstrapper-manifests";   ///< ConfigMap
  std::string pull_secret = "registry-credentials";           ///< kubernetes.io/dockerconfigjson
  std::string trust_bundle = "rt-bootstrapper-trust-bundle";  ///< ClusterTrustBundle
};

}  // namespace rw
