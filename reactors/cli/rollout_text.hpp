#pragma once

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::cli {

/// A source with the resourceVersion that a roll-out must have read at least:
/// "ConfigMap/rt-bootstrapper-config=4711".
struct source_version {
  std::string kind = {};
  std::string name = {};
  std::string resource_version = {};
};
std::optional<source_version> parse_source_version(std::string_view text);

/// What `rollout status` says of a RuntimeRollout, in the words of `kubectl rollout status`.
struct rollout_report {
  enum class outcome { done, waiting, failed };
  outcome is = outcome::waiting;
  std::string line = {};  ///< one sentence, without a line feed
  std::string next = {};  ///< what to do, where it failed; empty: the sentence says so
};

/// Pure. Done: all runtimes have the content, and the controller has seen the spec and `sources`.
/// Failed: it does not go on by itself, or is completed but for runtimes that were set aside; that
/// these get the content once they respond does not count. `invalid`: "; " and which sources are
/// invalid, or nothing.
rollout_report report_of(const boost::json::value& rollout,
                         const std::vector<source_version>& sources, std::string_view invalid = {});

/// Follows a roll-out's phase: it is paused by hand, or its revision is pinned though no newer
/// sources wait, each with the command that ends that; empty: neither.
std::string held_note(const boost::json::value& rollout);

/// Says when the manager creates the RuntimeRollout of a component; empty: of any.
std::string when_created(std::string_view component);

/// Which revision is pinned and keeps newer sources out, and the command that ends it; empty: none.
std::string waiting_sources(const boost::json::value& rollout);

/// A RuntimeRollout's table: its name, then the rows, the first of which has the titles.
std::string in_columns(const boost::json::value& rollout,
                       const std::vector<std::vector<std::string>>& rows);

/// `rollout status` as one document: `name`, `outcome` (done, waiting, failed), `message`, `fix` if
/// there is one, and the `status` without its history.
boost::json::value report_document(const boost::json::value& rollout, const rollout_report& of);

/// Formats the roll-outs of a status, the newest last: a table as of `kubectl rollout history`.
std::string history_of(const boost::json::value& rollout);
/// `rollout history` as one document: `name` and `history`.
boost::json::value history_document(const boost::json::value& rollout);

/// The change that pauses; empty, with `error` set, if it is paused by hand already.
boost::json::value pause_change(const boost::json::value& rollout, std::string& error);
/// The change that pins a revision, by its digest or at least 4 characters of its beginning; empty:
/// the last one before the present one that was completed. An object without a member: that is the
/// present content. Null, with `error` set, if there is none that can be pinned.
boost::json::value undo_change(const boost::json::value& rollout, std::string_view revision,
                               std::string& error);
/// The change that resumes, also after failures, which `token` then marks as accepted; empty, with
/// `error` set, if it is not paused.
boost::json::value resume_change(const boost::json::value& rollout, std::string token,
                                 std::string& error);
/// The change that ends the bake of the present step, which `token` then marks; empty, with `error`
/// set, if no step is under way, it is paused, or it bakes no longer.
boost::json::value promote_change(const boost::json::value& rollout, std::string token,
                                  std::string& error);

}  // namespace rw::cli
