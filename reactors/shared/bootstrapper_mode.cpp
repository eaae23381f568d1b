#include "rw/reactors/shared/bootstrapper_mode.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/value.hpp>

#include <array>
#include <utility>

namespace rw {
namespace {

constexpr std::array<std::pair<bootstrapper_mode, std::string_view>, 4> mode_names{{
    {bootstrapper_mode::off, "off"},
    {bootstrapper_mode::signal, "signal"},
    {bootstrapper_mode::shadow, "shadow"},
    {bootstrapper_mode::direct, "direct"},
}};

}  // namespace

std::string_view to_string(bootstrapper_mode mode) {
  for (const auto& [each, name] : mode_names) {
    if (each == mode) return name;
  }
  return "off";
}

std::optional<bootstrapper_mode> parse_bootstrapper_mode(std::string_view text) {
  for (const auto& [each, name] : mode_names) {
    if (name == text) return each;
  }
  return std::nullopt;
}

bootstrapper_mode mode_of(const boost::json::value& runtime, bootstrapper_mode by_default,
                          bool* wrong) {
  if (wrong) *wrong = false;
  const auto text = k8s::annotation(runtime, bootstrapper_mode_annotation);
  if (!k8s::has_annotation(runtime, bootstrapper_mode_annotation)) return by_default;
  const auto mode = parse_bootstrapper_mode(text);
  if (wrong) *wrong = !mode;
  return mode.value_or(bootstrapper_mode::off);
}

bool carries_mark(const boost::json::value& runtime, mark_form form) {
  const auto value = form == mark_form::annotation
                         ? k8s::annotation(runtime, force_reconciliation_mark)
                         : k8s::label(runtime, force_reconciliation_mark);
  return value == "true";
}

bool is_suspended(const boost::json::value& runtime) {
  return k8s::annotation(runtime, suspend_reconciliation_annotation) == "true";
}

}  // namespace rw
