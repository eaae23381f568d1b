#pragma once

#include "reactors/bootstrapper_mode.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rw::config_sync {

/// The forms that the mark has (bootstrapper_mode.hpp). KIM may know only one of them, and then
/// takes only that one off.
struct mark_forms {
  bool annotation = false;
  bool label = false;

  bool any() const noexcept { return annotation || label; }
  friend bool operator==(const mark_forms&, const mark_forms&) = default;
};

/// "annotation", "label" or "both".
std::optional<mark_forms> parse_mark_forms(std::string_view text);

/// The forms that a Runtime carries the mark in.
mark_forms forms_on(const boost::json::value& runtime);

/// One state of the sources. States are numbered as they are noticed, so that one that comes back
/// after another is told from the first: between the two a runtime may have got the other.
struct state {
  std::uint64_t number = 0;
  std::string digest = {};  ///< source_watch::digest

  friend bool operator==(const state&, const state&) = default;
};

/// What `signalled_annotation` says: "<number> <digest>", and behind that the forms of the mark
/// that was set with it: "annotation", "label", "annotation,label", or nothing when no part of it
/// is left.
struct signal {
  state of = {};
  mark_forms set = {};

  friend bool operator==(const signal&, const signal&) = default;
};

std::string to_string(const signal& what);
std::optional<signal> parse_signal(std::string_view text);

/// The state that all runtimes are to have.
struct target {
  state of = {};
  /// When it was noticed first, whole seconds. Runtimes made later got it from KIM when they were
  /// made. None: since ever; it is the first state that there was.
  std::optional<std::chrono::system_clock::time_point> since = {};

  friend bool operator==(const target&, const target&) = default;
};

/// How a Runtime stands to the target.
enum class standing : std::uint8_t {
  current,    ///< KIM was told and has taken the mark off, or need not be told
  pending,    ///< it carries a mark, ours or somebody's: KIM has not finished
  behind,     ///< it is to be marked
  suspended,  ///< it is not to be touched for now, and would be behind or pending
  apart,      ///< its mode is none that is signalled
};

std::string_view to_string(standing how);

/// What is to be done with a Runtime next.
enum class step : std::uint8_t {
  nothing,
  mark,    ///< mark it, and note the target's state
  tidy,    ///< take off the rest of our mark, which KIM has taken one form of
  disown,  ///< note `signalled_nothing`, and take off the rest of our mark
};

struct judgement {
  step next = step::nothing;
  standing how = standing::apart;
};

/// Decides for one Runtime, as it is at its resourceVersion:
///   - What is being deleted, or in mode `off`, is left alone; so is one that is suspended.
///   - A Runtime that carries a mark is waited for, whoever set it. Which state KIM brings it to is
///     not known then: it may have read the sources before they changed. So nothing is noted beside
///     a mark; when the mark has gone, what was noted with it says whether another one is due.
///   - One of the mark's two forms is gone: KIM has taken it. The rest is ours to take off, or it
///     would look like a mark for ever.
///   - No mark: it is current if the target's state is what was signalled; if nothing ever was, if
///     it was made after the target's state was noticed and `late` thereafter, for clocks that
///     differ and for caches that KIM may read the sources from.
///   - In mode `direct` `signalled_nothing` is noted, since nobody knows any more what KIM wrote.
judgement judge(const boost::json::value& runtime, const target& now, bootstrapper_mode mode,
                std::chrono::seconds late);

/// What is applied for a step (not `nothing`), as the complete set of this field manager's fields,
/// on the Runtime as it is: with its uid and resourceVersion, so that it is refused when anybody
/// changed the Runtime meanwhile. `forms` are those of a mark.
boost::json::value render(const boost::json::value& runtime, step next, const target& now,
                          mark_forms forms);

}  // namespace rw::config_sync
