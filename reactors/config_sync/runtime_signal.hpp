#pragma once

#include "rw/core/clock.hpp"
#include "rw/reactors/config_sync/target.hpp"
#include "rw/reactors/shared/bootstrapper_mode.hpp"
#include "rw/reactors/shared/bootstrapper_sources.hpp"

#include <boost/json/value.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rw::config_sync {

/// The value of `signalled_annotation`: "<number> <digest> <attempt> <time>", such as
/// "17 8e1e86 1 2026-03-02T10:00:00Z". Earlier releases wrote other words after the digest, which
/// are ignored.
struct signal {
  numbered_revision of = {};
  unsigned attempt = 0;  ///< marks for this revision so far; 0: another client's mark covered it
  std::optional<std::chrono::system_clock::time_point> at = {};  ///< of the last mark

  friend bool operator==(const signal&, const signal&) = default;
};

std::string to_string(const signal& value);
/// None if there is no revision in it.
std::optional<signal> parse_signal(std::string_view text);

/// The state of one Runtime with regard to the target.
enum class signal_state : std::uint8_t {
  current,        ///< KIM has configured the runtime with the target, as far as can be told
  outdated,       ///< is to be marked
  marked,         ///< carries a mark: KIM has not begun
  in_progress,    ///< KIM has taken the mark off, and has not ended
  failed,         ///< KIM fails, then or later, or took too long; is marked again after a backoff
  suspended,      ///< would be one of the four before, and is not to be touched
  direct,         ///< in mode direct
  direct_marked,  ///< in mode direct, with a mark: KIM is about to write to the runtime, too
  unmanaged,      ///< its mode is off or unknown, or it is being deleted
};

std::string_view to_string(signal_state state);

/// What is written to a Runtime next. Each is a server-side apply of all fields of ours, at the
/// resourceVersion that was read.
enum class signal_write : std::uint8_t {
  none,
  mark,      ///< the mark, and the signal that it stands for
  note,      ///< the signal only: a mark that is gone by now covered the target
  withdraw,  ///< `signalled_nothing`, and no mark of ours
};

/// One Runtime as its object shows it.
struct runtime_view {
  enum class kim_state : std::uint8_t { idle, pending, failed };

  bootstrapper_mode mode = bootstrapper_mode::off;  ///< off as well for one being deleted
  bool suspended = false;
  bool marked = false;
  kim_state kim = kim_state::idle;  ///< status.state
  bool noted = false;               ///< it has the annotation `signalled_annotation`
  bool withdrawn = false;           ///< which is `signalled_nothing`
  std::optional<signal> last = {};  ///< or a signal
  std::optional<std::chrono::system_clock::time_point> created = {};
};

runtime_view view_of(const boost::json::value& runtime, bootstrapper_mode mode, mark_form form);

struct signal_timing {
  /// A Runtime that is created so much later than a revision was observed got it from KIM then.
  std::chrono::seconds late = std::chrono::minutes(5);
  /// KIM is done when the Runtime has been neither Pending nor Failed for this time.
  std::chrono::milliseconds quiet = std::chrono::minutes(2);
  /// KIM counts as failed when it has not ended after this time.
  std::chrono::milliseconds timeout = std::chrono::hours(1);
  /// From a mark to the next one for the same revision; doubled with each, up to the limit. Also
  /// from a failure of a Runtime that was current, which may have nothing to do with its mark.
  std::chrono::milliseconds retry = std::chrono::minutes(5);
  std::chrono::milliseconds retry_limit = std::chrono::hours(4);
  /// A Runtime that returns from mode direct is marked after so long: by then the last write of
  /// ours has ended, and KIM's comes after it.
  std::chrono::milliseconds late_write = std::chrono::seconds(10);
};

struct sync_options {
  bootstrapper_sources sources = {};
  bootstrapper_mode mode = bootstrapper_mode::signal;  ///< of Runtimes without the annotation
  mark_form form = mark_form::annotation;
  std::string field_manager = "runtime-watcher-config-sync";  ///< of marks and of the record
  /// Runtimes are marked when the sources have been still for so long: changes that belong together
  /// become one. At most `settle_limit` after the first of them, and then every `settle_limit`.
  std::chrono::milliseconds settle = std::chrono::seconds(2);
  std::chrono::milliseconds settle_limit = std::chrono::seconds(30);
  bool signal_all_once = false;  ///< target.hpp
  signal_timing timing = {};
  std::size_t concurrent = 8;  ///< Runtimes at once
};

/// The moment of a decision, and what all Runtimes have in common then.
struct signal_moment {
  core::time_point now = {};
  std::chrono::system_clock::time_point wall = {};
  const signal_timing& timing;
  const target& to;
  std::uint64_t visible_at = 0;  ///< the sources had its content at this version, or before
  /// When an outdated Runtime is to be marked: once the sources are still, or earlier while they go
  /// on changing, if its last mark is `gap` ago.
  core::time_point due = {};
  core::time_point due_in_series = core::time_point::max();
  core::duration gap = std::chrono::seconds(30);
};

struct signal_decision {
  signal_state state = signal_state::unmanaged;
  signal_write write = signal_write::none;
  signal as = {};  ///< to be written
  /// Since when the Runtime waits, if it did so before this was asked first; none: since now.
  std::optional<std::chrono::system_clock::time_point> since = {};
  core::time_point recheck_at = core::time_point::max();
};

/// The state machine of one Runtime: what KIM makes of the last mark.
///
///     marked --mark gone--> running --Pending, then Ready, or quiet--> done
///                             |  ^                                     |  ^
///                 Failed, or timeout |                            Failed  |
///                             v  |Pending                              |  |
///                           failed <-----------------------------------'  |
///                             '---Ready-----------------------------------'
///
/// KIM reads the sources after it has taken the mark off. So a mark that was still there when a
/// change could be read covers that change, whichever client set it; resourceVersions decide that,
/// and where those can't be compared it is marked once more. A change after the mark went may or
/// may not be covered: the Runtime is marked again.
///
/// Nothing on a Runtime shows what failed. One that becomes Failed at any time after its mark went
/// is marked again with the same backoff, up to its limit, as long as it is Failed: KIM itself does
/// not try again.
///
/// The state in memory is lost with the process: then a Runtime without mark is taken to be
/// running, if its last mark is not older than the quiet time; otherwise by its state.
class signal_machine {
 public:
  /// To be called with each state of the Runtime that is read, in their order. `version` is the
  /// newest resourceVersion at which the Runtime is known to have this state.
  void observe(const runtime_view& seen, std::uint64_t version, const signal_moment& at);

  /// What the Runtime's state is, what is to be written now, and when it is to be asked again if
  /// nothing is observed until then. Pure.
  signal_decision poll(const runtime_view& seen, const signal_moment& at) const;

 private:
  enum class phase : std::uint8_t { unknown, marked, running, done, failed };

  void observe_kim(runtime_view::kim_state kim, const signal_moment& at);
  void mark_at(signal_decision& out, core::time_point due, unsigned attempt,
               const signal_moment& at) const;
  core::time_point retry_at(const signal& last, const signal_moment& at) const;

  phase phase_ = phase::unknown;
  std::uint64_t marked_version_ = 0;  ///< the newest at which a mark was there
  bool was_done_ = false;
  bool pending_ = false;          ///< the Runtime is, or was last, since `since_`
  core::time_point since_{};      ///< of the phase `running`
  core::time_point failed_at_{};  ///< after it was done
  std::optional<core::time_point> returned_at_ = {};  ///< from mode direct
};

/// What is applied for a write (not `none`): all fields of this field manager, with the Runtime's
/// uid and resourceVersion, so that it is rejected if the Runtime has changed since.
boost::json::value render(const boost::json::value& runtime, signal_write write, const signal& as,
                          mark_form form);

}  // namespace rw::config_sync
