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

/// On a Runtime, with the value "true": KIM is asked to bring the runtime in step with KCP. KIM
/// takes the mark off when it has done so. It is set as an annotation, as a label, or as both,
/// since the two have been in use.
inline constexpr std::string_view force_reconciliation_mark =
    "operator.kyma-project.io/force-patch-reconciliation";

/// True if the Runtime carries the mark, in either form: KIM may be writing to the runtime, or
/// about to. Nobody else should begin to before it is gone.
bool carries_mark(const boost::json::value& runtime);

/// On a Runtime: which state of the sources its last mark stood for (config_sync/signal.hpp), and
/// what stands there once the Runtime's mode is `direct` and no mark of it is left: whatever KIM
/// was told before, it is told anew when the mode is signalled again.
inline constexpr std::string_view signalled_annotation =
    "operator.kyma-project.io/signalled-configuration";
inline constexpr std::string_view signalled_nothing = "none";

/// True if a Runtime in mode `direct` has been let go of by those who signal: it carries no mark,
/// and says that nothing is signalled. Who writes to the runtime itself waits for it, and looks
/// again before each write.
bool is_handed_over(const boost::json::value& runtime);

/// On a Runtime, with the value "true": its runtime is to be left as it is.
inline constexpr std::string_view suspend_reconciliation_annotation =
    "operator.kyma-project.io/suspend-patch-reconciliation";

bool is_suspended(const boost::json::value& runtime);

/// What is kept in step on all runtimes: these objects in KCP, in `kcp_namespace`.
struct bootstrapper_sources {
  std::string config = "rt-bootstrapper-config";              ///< ConfigMap
  std::string manifests = "runtime-bootstrapper-manifests";   ///< ConfigMap
  std::string pull_secret = "registry-credentials";           ///< kubernetes.io/dockerconfigjson
  std::string trust_bundle = "rt-bootstrapper-trust-bundle";  ///< ClusterTrustBundle
};

}  // namespace rw
