#include "rw/reactors/config_sync/runtime_signal.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::config_sync {
namespace {

namespace json = boost::json;

/// Cuts the first word off.
std::string_view next_word(std::string_view& text) {
  const auto end = std::min(text.find(' '), text.size());
  const auto word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

/// KIM configured the Runtime with the target when it created its runtime.
bool is_newer(const runtime_view& seen, const target& to, std::chrono::seconds late) {
  return !to.since || (seen.created && *seen.created > *to.since + late);
}

std::chrono::milliseconds delay_after(unsigned attempt, const signal_timing& timing) {
  auto delay = timing.retry;
  for (; attempt > 1 && delay < timing.retry_limit; --attempt) delay *= 2;
  return std::min(delay, timing.retry_limit);
}

/// When the first mark of the last one's series was set, if all were set in time.
std::optional<std::chrono::system_clock::time_point> began_at(const signal& last,
                                                              const signal_timing& timing) {
  auto out = last.at;
  for (auto i = last.attempt; out && i > 1; --i) *out -= delay_after(i - 1, timing);
  return out;
}

}  // namespace

std::string to_string(const signal& value) {
  auto text = std::to_string(value.of.number) + " " + value.of.digest;
  if (value.at) text += " " + std::to_string(value.attempt) + " " + k8s::format_time(*value.at);
  return text;
}

std::optional<signal> parse_signal(std::string_view text) {
  signal out;
  const auto number = core::parse_number<std::uint64_t>(next_word(text));
  out.of = {number.value_or(0), std::string(next_word(text))};
  if (!number || out.of.digest.empty()) return std::nullopt;
  const auto attempt = core::parse_number<unsigned>(next_word(text));
  if (attempt) out.at = k8s::parse_rfc3339(text);
  if (out.at) out.attempt = *attempt;
  return out;
}

std::string_view to_string(signal_state state) {
  static constexpr std::array<std::string_view, 9> names{
      "current",   "outdated", "marked",        "in_progress", "failed",
      "suspended", "direct",   "direct_marked", "unmanaged"};
  return names.at(static_cast<std::size_t>(state));
}

runtime_view view_of(const json::value& runtime, bootstrapper_mode mode, mark_form form) {
  runtime_view out;
  out.mode = k8s::is_being_deleted(runtime) ? bootstrapper_mode::off : mode;
  out.suspended = is_suspended(runtime);
  out.marked = carries_mark(runtime, form);
  const auto state = k8s::find_string(runtime, {"status", "state"});
  if (state == "Pending") out.kim = runtime_view::kim_state::pending;
  if (state == "Failed") out.kim = runtime_view::kim_state::failed;
  if (k8s::has_annotation(runtime, signalled_annotation)) {
    const auto text = k8s::annotation(runtime, signalled_annotation);
    out.noted = true;
    out.withdrawn = text == signalled_nothing;
    out.last = parse_signal(text);
  }
  out.created = k8s::created_at(runtime);
  return out;
}

void signal_machine::observe(const runtime_view& seen, std::uint64_t version,
                             const signal_moment& at) {
  if (!signals(seen.mode)) {
    *this = {};
    return;
  }
  if (seen.withdrawn && !returned_at_) returned_at_ = at.now;
  if (seen.marked) {
    marked_version_ = std::max(marked_version_, version);
    phase_ = phase::marked;
    return;
  }
  if (phase_ == phase::unknown || phase_ == phase::marked) {
    const bool is_old = phase_ == phase::unknown && seen.last && seen.last->at &&
                        *seen.last->at + at.timing.quiet <= at.wall;
    phase_ = phase::running;
    since_ = is_old ? at.now - at.timing.quiet : at.now;
    pending_ = false;
  }
  observe_kim(seen.kim, at);
  was_done_ = was_done_ || phase_ == phase::done;
}

void signal_machine::observe_kim(runtime_view::kim_state kim, const signal_moment& at) {
  using kim_state = runtime_view::kim_state;
  if (kim == kim_state::failed) {
    if (phase_ == phase::done) failed_at_ = at.now;
    phase_ = phase::failed;
    pending_ = false;
  } else if (kim == kim_state::pending) {
    const bool resumes = phase_ == phase::failed && !pending_;
    if (resumes) since_ = at.now;
    if (resumes) phase_ = phase::running;
    pending_ = phase_ != phase::done;
    if (pending_ && at.now >= since_ + at.timing.timeout) phase_ = phase::failed;
  } else if (phase_ != phase::running || pending_ || at.now >= since_ + at.timing.quiet) {
    phase_ = phase::done;
    pending_ = false;
  }
}

void signal_machine::mark_at(signal_decision& out, core::time_point due, unsigned attempt,
                             const signal_moment& at) const {
  out.as = {at.to.of, attempt, at.wall};
  if (at.now < due) {
    out.recheck_at = due;
  } else {
    out.write = signal_write::mark;
  }
}

core::time_point signal_machine::retry_at(const signal& last, const signal_moment& at) const {
  const auto after_failure = failed_at_ + at.timing.retry;
  if (!last.at) return std::max(after_failure, since_ + at.timing.retry);
  return std::max(after_failure,
                  at.now + (*last.at - at.wall) + delay_after(last.attempt, at.timing));
}

signal_decision signal_machine::poll(const runtime_view& seen, const signal_moment& at) const {
  signal_decision out;
  if (seen.mode == bootstrapper_mode::off) return out;
  if (seen.mode == bootstrapper_mode::direct) {
    out.state = seen.marked ? signal_state::direct_marked : signal_state::direct;
    if (!seen.withdrawn) out.write = signal_write::withdraw;
    return out;
  }
  const bool noted = seen.last && seen.last->of == at.to.of;
  const bool covered = noted || marked_version_ > at.visible_at;
  const bool needs_none = !seen.noted && is_newer(seen, at.to, at.timing.late);
  // Whether a mark older than any reconcile was set here is unknown.
  const bool is_recent = seen.last && seen.last->at && at.wall < *seen.last->at + at.timing.timeout;
  if (noted && !was_done_ && (is_recent || !seen.marked)) {
    out.since = began_at(*seen.last, at.timing);
  }
  if (!noted && !needs_none && !seen.withdrawn) out.since = at.to.since;
  if (seen.suspended) {
    const bool is_current = !seen.marked && (needs_none || (covered && phase_ == phase::done));
    out.state = is_current ? signal_state::current : signal_state::suspended;
    return out;
  }
  if (!covered && !needs_none) {
    out.state = seen.marked ? signal_state::marked : signal_state::outdated;
    auto in_series = at.due_in_series;
    if (seen.last && seen.last->at) {
      in_series = std::max(in_series, at.now + (*seen.last->at - at.wall) + at.gap);
    }
    auto due = std::min(at.due, in_series);
    if (seen.withdrawn && returned_at_) due = std::max(due, *returned_at_ + at.timing.late_write);
    mark_at(out, due, 1, at);
    return out;
  }
  if (seen.marked) {
    out.state = signal_state::marked;
    // KIM may have failed before it took the mark off.
    const bool failed = seen.kim == runtime_view::kim_state::failed;
    if (failed && noted) mark_at(out, retry_at(*seen.last, at), seen.last->attempt + 1, at);
    if (failed && !noted && !needs_none) mark_at(out, at.due, 1, at);
    return out;
  }
  if (needs_none || phase_ == phase::done) {
    out.state = signal_state::current;
  } else if (phase_ == phase::failed) {
    out.state = signal_state::failed;
    if (noted) mark_at(out, retry_at(*seen.last, at), seen.last->attempt + 1, at);
  } else {
    out.state = signal_state::in_progress;
    out.recheck_at = since_ + (pending_ ? at.timing.timeout : at.timing.quiet);
  }
  if (!noted && !needs_none) {
    out.write = signal_write::note;
    out.as = {at.to.of, 0, at.wall};
  }
  return out;
}

json::value render(const json::value& runtime, signal_write write, const signal& as,
                   mark_form form) {
  const auto key = k8s::key_of(runtime);
  json::object annotations;
  json::object metadata{{"name", key.name},
                        {"namespace", key.ns},
                        {"uid", k8s::uid_of(runtime)},
                        {"resourceVersion", k8s::resource_version_of(runtime)}};
  annotations[signalled_annotation] =
      write == signal_write::withdraw ? std::string(signalled_nothing) : to_string(as);
  if (write == signal_write::mark) {
    json::object mark{{force_reconciliation_mark, "true"}};
    if (form == mark_form::annotation) {
      annotations.insert(mark.begin(), mark.end());
    } else {
      metadata["labels"] = std::move(mark);
    }
  }
  metadata["annotations"] = std::move(annotations);
  const auto& type = runtimes_type();
  return json::object{{"apiVersion", type.gvk.api_version()},
                      {"kind", type.gvk.kind},
                      {"metadata", std::move(metadata)}};
}

}  // namespace rw::config_sync
