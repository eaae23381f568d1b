#pragma once

#include "k8s/types.hpp"
#include "reactors/config_sync/signal.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace rw::config_sync::test {

using texts = std::map<std::string_view, std::string_view>;

inline const auto day0 =
    std::chrono::system_clock::time_point(std::chrono::sys_days(std::chrono::year(2026) / 3 / 1));

/// A Runtime, made on `made`, with these annotations and labels.
inline boost::json::value runtime(const texts& annotations = {}, const texts& labels = {},
                                  std::chrono::system_clock::time_point made = day0) {
  boost::json::value out = {{"apiVersion", runtimes_type().gvk.api_version()},
                            {"kind", runtimes_type().gvk.kind},
                            {"metadata",
                             {{"name", "r1"},
                              {"namespace", kcp_namespace},
                              {"uid", "u-1"},
                              {"resourceVersion", "42"},
                              {"creationTimestamp", k8s::format_time(made)}}}};
  for (const auto& [name, to] : annotations) k8s::set_annotation(out, name, to);
  for (const auto& [name, to] : labels) k8s::set_label(out, name, to);
  return out;
}

inline constexpr auto mark = force_reconciliation_mark;
inline constexpr auto noted = signalled_annotation;

/// The state that the tests' Runtimes are to have; noticed a day after they were made.
inline target third() {
  return {{3, "c3"}, day0 + std::chrono::hours(24)};
}

}  // namespace rw::config_sync::test
