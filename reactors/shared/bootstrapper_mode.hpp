#pragma once

#include <boost/json/fwd.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace rw {

/// The writer of the Runtime Bootstrapper's configuration on a runtime. Each Runtime may have a
/// mode of its own, and change it at any time, in any direction.
enum class bootstrapper_mode {
  off,     ///< neither marked nor written to
  signal,  ///< the Runtime is marked, and Kyma Infrastructure Manager (KIM) writes
  shadow,  ///< as `signal`; what `direct` would write is computed and the difference reported
  direct,  ///< written to the runtime; the Runtime is not marked
};

std::string_view to_string(bootstrapper_mode mode);

/// Returns nothing if `text` is not a mode.
std::optional<bootstrapper_mode> parse_bootstrapper_mode(std::string_view text);

/// On a Runtime: its mode, if it is not the manager's default.
inline constexpr std::string_view bootstrapper_mode_annotation =
    "operator.kyma-project.io/bootstrapper-mode";

/// Returns the mode of one Runtime (any object with metadata). An invalid annotation means `off`,
/// and sets `wrong`, if given.
bootstrapper_mode mode_of(const boost::json::value& runtime, bootstrapper_mode by_default,
                          bool* wrong = nullptr);

/// Returns whether the Runtime is marked for KIM in this mode.
constexpr bool signals(bootstrapper_mode mode) noexcept {
  return mode == bootstrapper_mode::signal || mode == bootstrapper_mode::shadow;
}

/// On a Runtime, with the value "true": requests a reconcile of KIM. KIM reads the annotation,
/// removes it when it begins, and reads the sources after that. KIM ignores a label of this name,
/// which the first description of the contract mentions.
inline constexpr std::string_view force_reconciliation_mark =
    "operator.kyma-project.io/force-patch-reconciliation";

/// The kind of the mark. Only the configured kind counts; a mark of the other kind belongs to
/// another client.
enum class mark_form { annotation, label };

/// Returns true if the Runtime has the mark: KIM has not begun yet.
bool carries_mark(const boost::json::value& runtime, mark_form form = mark_form::annotation);

/// On a Runtime: the revision of the sources at its last mark (config_sync/runtime_signal.hpp). The
/// second value means none: the Runtime's mode was `direct`, so that it is marked again when its
/// mode becomes `signal` again.
inline constexpr std::string_view signalled_annotation =
    "operator.kyma-project.io/signalled-configuration";
inline constexpr std::string_view signalled_nothing = "none";

/// On a Runtime, with the value "true": its runtime is to be left alone.
inline constexpr std::string_view suspend_reconciliation_annotation =
    "operator.kyma-project.io/suspend-patch-reconciliation";

bool is_suspended(const boost::json::value& runtime);

}  // namespace rw
