#include "reactors/config_sync/signal.hpp"

#include "k8s/rfc3339.hpp"
#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>

#include <charconv>
#include <utility>

namespace rw::config_sync {
namespace {

namespace json = boost::json;

/// Cuts the first word off.
std::string_view word(std::string_view& text) {
  const auto end = std::min(text.find(' '), text.size());
  const auto first = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return first;
}

std::string_view to_string(mark_forms forms) {
  if (forms.annotation && forms.label) return "annotation,label";
  if (forms.annotation) return "annotation";
  return forms.label ? "label" : "";
}

/// What the Runtime says was signalled.
struct noted {
  bool there = false;
  std::optional<signal> last = {};
};

noted noted_on(const json::value& runtime) {
  const auto text = k8s::annotation(runtime, signalled_annotation);
  if (!text) return {};
  return {true, parse_signal(*text)};
}

bool made_after(const json::value& runtime, const target& now, std::chrono::seconds late) {
  if (!now.since) return true;
  const auto made =
      k8s::parse_rfc3339(k8s::find_string(runtime, {"metadata", "creationTimestamp"}));
  return made && *made > *now.since + late;
}

/// KIM has taken one form of the mark that we set, and the other is still there.
bool is_half_taken(mark_forms there, mark_forms set) {
  const mark_forms left{there.annotation && set.annotation, there.label && set.label};
  return left.any() && left != set;
}

judgement judge_unmarked(const noted& note, const json::value& runtime, const target& now,
                         std::chrono::seconds late) {
  const bool is_current =
      note.there ? note.last && note.last->of == now.of : made_after(runtime, now, late);
  if (is_current) return {step::nothing, standing::current};
  return {step::mark, standing::behind};
}

judgement judge_direct(const noted& note, const json::value& runtime, bool pending) {
  const bool disowned = k8s::annotation(runtime, signalled_annotation) == signalled_nothing;
  if (disowned || (pending && !(note.last && is_half_taken(forms_on(runtime), note.last->set)))) {
    return {step::nothing, standing::apart};
  }
  return {step::disown, standing::apart};
}

}  // namespace

std::optional<mark_forms> parse_mark_forms(std::string_view text) {
  if (text == "annotation") return mark_forms{.annotation = true};
  if (text == "label") return mark_forms{.label = true};
  if (text == "both") return mark_forms{.annotation = true, .label = true};
  return std::nullopt;
}

mark_forms forms_on(const json::value& runtime) {
  return {.annotation = k8s::annotation(runtime, force_reconciliation_mark) == "true",
          .label = k8s::label(runtime, force_reconciliation_mark) == "true"};
}

std::string to_string(const signal& what) {
  std::string text = std::to_string(what.of.number) + " " + what.of.digest;
  if (what.set.any()) text.append(" ").append(to_string(what.set));
  return text;
}

std::optional<signal> parse_signal(std::string_view text) {
  signal out;
  const auto number = word(text);
  const auto* const end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, out.of.number);
  out.of.digest = word(text);
  if (error != std::errc() || stop != end || out.of.digest.empty()) return std::nullopt;
  for (const auto forms : {mark_forms{}, mark_forms{.annotation = true}, mark_forms{.label = true},
                           mark_forms{.annotation = true, .label = true}}) {
    if (to_string(forms) != text) continue;
    out.set = forms;
    return out;
  }
  return std::nullopt;
}

std::string_view to_string(standing how) {
  switch (how) {
    case standing::current:
      return "current";
    case standing::pending:
      return "pending";
    case standing::behind:
      return "behind";
    case standing::suspended:
      return "suspended";
    case standing::apart:
      return "apart";
  }
  return {};
}

judgement judge(const json::value& runtime, const target& now, bootstrapper_mode mode,
                std::chrono::seconds late) {
  const bool ours = mode == bootstrapper_mode::direct || signals(mode);
  if (!ours || k8s::is_being_deleted(runtime)) return {};
  const auto note = noted_on(runtime);
  const bool pending = carries_mark(runtime);
  if (is_suspended(runtime)) {
    if (!signals(mode)) return {};
    const auto otherwise = judge_unmarked(note, runtime, now, late).how;
    const bool is_current = !pending && otherwise == standing::current;
    return {step::nothing, is_current ? standing::current : standing::suspended};
  }
  if (mode == bootstrapper_mode::direct) return judge_direct(note, runtime, pending);
  if (!pending) return judge_unmarked(note, runtime, now, late);
  const bool half = note.last && is_half_taken(forms_on(runtime), note.last->set);
  return {half ? step::tidy : step::nothing, standing::pending};
}

json::value render(const json::value& runtime, step next, const target& now, mark_forms forms) {
  const auto key = k8s::key_of(runtime);
  json::object annotations;
  json::object metadata{{"name", key.name},
                        {"namespace", key.ns},
                        {"uid", k8s::uid_of(runtime)},
                        {"resourceVersion", k8s::resource_version_of(runtime)}};
  if (next == step::mark) {
    annotations[signalled_annotation] = to_string(signal{now.of, forms});
    if (forms.annotation) annotations[force_reconciliation_mark] = "true";
    if (forms.label) metadata["labels"] = json::object{{force_reconciliation_mark, "true"}};
  } else if (next == step::tidy) {
    const auto note = noted_on(runtime);
    annotations[signalled_annotation] =
        note.last ? to_string(signal{note.last->of, {}}) : std::string(signalled_nothing);
  } else {
    annotations[signalled_annotation] = signalled_nothing;
  }
  metadata["annotations"] = std::move(annotations);
  const auto& type = runtimes_type();
  return json::object{{"apiVersion", type.gvk.api_version()},
                      {"kind", type.gvk.kind},
                      {"metadata", std::move(metadata)}};
}

}  // namespace rw::config_sync
