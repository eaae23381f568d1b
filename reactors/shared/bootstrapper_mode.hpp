#pragma once

#include <boost/json/fwd.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace rw {

/// Who writes the Runtime Bootstrapper's configuration to a runtime. Each Runtime may have a mode
/// of its own, and change it at any time, in any direction.
enum class bootstrapper_mode {
  off,     ///< neither marked nor written to
  signal,  ///< the Runtime is marked, and Kyma Infrastructure Manager (KIM) writes
  shadow,  ///< as `signal`; what `direct` would write is computed and the difference reported
  direct,  ///< written to the runtime; the Runtime is not marked
};

std::string_view to_string(bootstrapper_mode mode);

/// Nothing if `text` names no mode.
std::optional<bootstrapper_mode> parse_bootstrapper_mode(std::string_view text);

/// On a Runtime: its mode, where it is not the manager's default.
inline constexpr std::string_view bootstrapper_mode_annotation =
    "operator.kyma-project.io/bootstrapper-mode";

/// The mode of one Runtime (any object with metadata). An annotation that names no mode means
/// `off`, and `wrong`, if given, becomes true.
bootstrapper_mode mode_of(const boost::json::value& runtime, bootstrapper_mode by_default,
                          bool* wrong = nullptr);

/// Whether the Runtime is marked for KIM in this mode.
constexpr bool signals(bootstrapper_mode mode) noexcept {
  return mode == bootstrapper_mode::signal || mode == bootstrapper_mode::shadow;
}

/// On a Runtime, with the value "true": KIM is asked to reconcile. KIM reads the annotation, takes
/// it off when it begins, and reads the sources after that. It knows nothing of a label of this
/// name, which the first description of the contract speaks of.
inline constexpr std::string_view force_reconciliation_mark =
    "operator.kyma-project.io/force-patch-reconciliation";

/// What the mark is set as. Only the form that is configured counts; a mark of the other form is
/// somebody's label or annotation.
enum class mark_form { annotation, label };

/// True if the Runtime carries the mark: KIM has not begun yet.
bool carries_mark(const boost::json::value& runtime, mark_form form = mark_form::annotation);

/// On a Runtime: which revision of the sources its last mark stood for
/// (config_sync/runtime_signal.hpp), and the value that says there is none: the Runtime's mode was
/// `direct`, so that it is marked again when its mode is signalled again.
inline constexpr std::string_view signalled_annotation =
    "operator.kyma-project.io/signalled-configuration";
inline constexpr std::string_view signalled_nothing = "none";

/// On a Runtime, with the value "true": its runtime is to be left as it is.
inline constexpr std::string_view suspend_reconciliation_annotation =
    "operator.kyma-project.io/suspend-patch-reconciliation";

bool is_suspended(const boost::json::value& runtime);

}  // namespace rw
