#include "rw/core/metrics.hpp"

#include "rw/core/process_metrics.hpp"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace rw::core {
namespace {

constexpr std::string_view total = "_total";

using family_names = std::set<std::string_view>;

/// The line of a family's help or type: "# TYPE name rest". In OpenMetrics a counter's family has
/// no suffix, which its samples have. A counter without it is of unknown type, and so is one whose
/// family would have the name of another.
void append_metadata(std::string& to, std::string_view line, const family_names& all) {
  const auto space = line.find(' ', 7);
  auto name = line.substr(7, space - 7);
  auto rest = line.substr(space + 1);
  const bool is_help = line.starts_with("# HELP ");
  const auto base = name.substr(0, name.size() - (name.ends_with(total) ? total.size() : 0));
  if (base != name && !all.contains(base)) {
    name = base;
  } else if (!is_help && rest == "counter") {
    rest = "unknown";
  }
  to.append(line.substr(0, 7)).append(name) += ' ';
  for (const char each : rest) {
    if (each == '"') to += '\\';
    to += each;
  }
  to += '\n';
}

/// From the Prometheus text format (github.com/OpenObservability/OpenMetrics, 1.0.0): samples are
/// the same.
std::string to_openmetrics(std::string_view text, const family_names& all) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) {
      append_metadata(out, line, all);
    } else {
      out.append(line) += '\n';
    }
  }
  return out += "# EOF\n";
}

std::string render(const std::vector<prometheus::MetricFamily>& families, exposition format) {
  auto text = prometheus::TextSerializer().Serialize(families);
  if (format == exposition::text) return text;
  family_names all;
  for (const auto& family : families) all.insert(family.name);
  return to_openmetrics(text, all);
}

}  // namespace

counter& make_counter(metrics& registry, const std::string& name, const std::string& help,
                      const labels& with) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(with);
}

gauge& make_gauge(metrics& registry, const std::string& name, const std::string& help,
                  const labels& with) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(with);
}

histogram& make_histogram(metrics& registry, const std::string& name, const std::string& help,
                          const labels& with, const std::vector<double>& bounds) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(with, bounds);
}

histogram_tally::histogram_tally(metrics& registry, const std::string& name,
                                 const std::string& help, const labels& with,
                                 std::vector<double> bounds, double scale)
    : into_(make_histogram(registry, name, help, with, bounds)),
      scale_(scale),
      bounds_(std::move(bounds)),
      counts_(bounds_.size() + 1) {
  for (auto& bound : bounds_) bound *= scale_;
}

void histogram_tally::publish() {
  into_.ObserveMultiple(counts_, std::exchange(sum_, 0) / scale_);
  std::ranges::fill(counts_, 0);
}

const std::vector<double>& latency_bounds() {
  static const std::vector<double> bounds = {0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025,
                                             0.005,   0.01,   0.025,   0.05,   0.1,   0.25,
                                             0.5,     1,      2.5,     5,      10};
  return bounds;
}

exposition exposition_for(std::string_view accept) noexcept {
  const bool asks = accept.find("application/openmetrics-text") != accept.npos;
  return asks ? exposition::openmetrics : exposition::text;
}

std::string_view media_type(exposition format) noexcept {
  return format == exposition::text ? "text/plain; version=0.0.4; charset=utf-8"
                                    : "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

std::string expose(const metrics& registry, exposition format) {
  return render(registry.Collect(), format);
}

std::string expose_with_process(const metrics& registry, exposition format) {
  return expose_with_process(registry, format, {});
}

std::string expose_with_process(const metrics& registry, exposition format, const labels& common) {
  auto families = registry.Collect();
  std::ranges::move(process_metrics(), std::back_inserter(families));
  for (auto& family : families) {
    for (auto& metric : family.metric) {
      for (const auto& [name, value] : common) metric.label.push_back({name, value});
    }
  }
  return render(families, format);
}

}  // namespace rw::core
