#include "rw/core/metrics.hpp"

#include "rw/core/metrics_snapshot.hpp"
#include "rw/core/process_metrics.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

BOOST_AUTO_TEST_SUITE(metrics)

namespace core = rw::core;

namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(same_name_and_labels_are_one_series) {
  core::metrics registry;
  auto& first = core::make_counter(registry, "events_total", "Events", {{"outcome", "ok"}});
  auto& same = core::make_counter(registry, "events_total", "Events", {{"outcome", "ok"}});
  auto& other = core::make_counter(registry, "events_total", "Events", {{"outcome", "bad"}});
  BOOST_TEST(&first == &same);
  BOOST_TEST(&first != &other);
  first.Increment(2);
  other.Increment();
  const auto text = core::expose(registry);
  BOOST_TEST(has_line(text, "# TYPE events_total counter"));
  BOOST_TEST(has_line(text, "# HELP events_total Events"));
  BOOST_TEST(has_line(text, "events_total{outcome=\"ok\"} 2"));
  BOOST_TEST(has_line(text, "events_total{outcome=\"bad\"} 1"));
}

BOOST_AUTO_TEST_CASE(gauges_and_histograms_are_exposed) {
  core::metrics registry;
  core::make_gauge(registry, "depth", "Depth").Set(1.5);
  auto& seconds = core::make_histogram(registry, "seconds", "Time", {}, {0.1, 1});
  seconds.Observe(0.05);
  seconds.Observe(0.5);
  seconds.Observe(5);
  const auto text = core::expose(registry);
  BOOST_TEST(has_line(text, "depth 1.5"));
  BOOST_TEST(has_line(text, "seconds_bucket{le=\"0.1\"} 1"));
  BOOST_TEST(has_line(text, "seconds_bucket{le=\"1\"} 2"));
  BOOST_TEST(has_line(text, "seconds_bucket{le=\"+Inf\"} 3"));
  BOOST_TEST(has_line(text, "seconds_count 3"));
}

BOOST_AUTO_TEST_CASE(label_values_are_escaped) {
  core::metrics registry;
  core::make_counter(registry, "odd_total", "Odd", {{"path", "a\"b\\c\nd"}}).Increment();
  BOOST_TEST(has_line(core::expose(registry), R"(odd_total{path="a\"b\\c\nd"} 1)"));
}

BOOST_AUTO_TEST_CASE(openmetrics_names_a_counters_family_without_suffix) {
  core::metrics registry;
  core::make_counter(registry, "events_total", "Number of \"events\"", {{"outcome", "ok"}})
      .Increment(2);
  core::make_counter(registry, "requests", "Number of requests").Increment();
  core::make_histogram(registry, "seconds", "Time", {}, {0.1}).Observe(0.05);
  const auto text = core::expose(registry, core::exposition::openmetrics);
  BOOST_TEST(has_line(text, "# TYPE events counter"));
  BOOST_TEST(has_line(text, R"(# HELP events Number of \"events\")"));
  BOOST_TEST(has_line(text, "events_total{outcome=\"ok\"} 2"));
  BOOST_TEST(has_line(text, "# TYPE requests unknown"));
  BOOST_TEST(has_line(text, "requests 1"));
  BOOST_TEST(has_line(text, "seconds_bucket{le=\"+Inf\"} 1"));
  BOOST_TEST(text.ends_with("\n# EOF\n"));
}

BOOST_AUTO_TEST_CASE(openmetrics_names_each_family_once) {
  core::metrics registry;
  core::make_gauge(registry, "events", "Events that wait").Set(3);
  core::make_counter(registry, "events_total", "Events").Increment(2);
  const auto text = core::expose(registry, core::exposition::openmetrics);
  BOOST_TEST(has_line(text, "# TYPE events gauge"));
  BOOST_TEST(has_line(text, "# HELP events Events that wait"));
  BOOST_TEST(has_line(text, "events 3"));
  BOOST_TEST(has_line(text, "# TYPE events_total unknown"));
  BOOST_TEST(has_line(text, "# HELP events_total Events"));
  BOOST_TEST(has_line(text, "events_total 2"));
  BOOST_TEST(!has_line(text, "# TYPE events counter"));
}

BOOST_AUTO_TEST_CASE(clients_get_the_format_that_they_ask_for) {
  using enum core::exposition;
  BOOST_TEST((core::exposition_for("") == text));
  BOOST_TEST((core::exposition_for("text/plain;version=0.0.4;q=0.5,*/*;q=0.1") == text));
  BOOST_TEST((core::exposition_for("application/openmetrics-text;version=1.0.0;q=0.5,"
                                   "text/plain;version=0.0.4;q=0.3") == openmetrics));
  BOOST_TEST(core::media_type(text).starts_with("text/plain;"));
  BOOST_TEST(core::media_type(openmetrics).starts_with("application/openmetrics-text;"));
}

BOOST_AUTO_TEST_CASE(process_is_described) {
  std::map<std::string, double> found;
  for (const auto& family : core::process_metrics()) {
    const auto& metric = family.metric.at(0);
    found[family.name] =
        family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
  }
  const auto now = static_cast<double>(std::time(nullptr));
  BOOST_TEST(found.size() == 6u);
  BOOST_TEST(found["process_cpu_seconds_total"] >= 0);
  BOOST_TEST(found["process_resident_memory_bytes"] > 1e6);
  BOOST_TEST(found["process_virtual_memory_bytes"] > found["process_resident_memory_bytes"]);
  BOOST_TEST(found["process_start_time_seconds"] > now - 24 * 3600.0);
  BOOST_TEST(found["process_start_time_seconds"] < now + 2);
  BOOST_TEST(found["process_open_fds"] >= 3);
  BOOST_TEST(found["process_max_fds"] >= found["process_open_fds"]);
  std::vector<std::FILE*> files;
  for (int i = 0; i < 10; ++i) files.push_back(std::tmpfile());
  for (const auto& family : core::process_metrics()) {
    if (family.name != "process_open_fds") continue;
    BOOST_TEST(family.metric.at(0).gauge.value == found["process_open_fds"] + 10);
  }
  for (auto* file : files) std::fclose(file);
}

BOOST_AUTO_TEST_CASE(common_labels_are_on_each_sample) {
  core::metrics registry;
  core::make_counter(registry, "events_total", "Events", {{"a", "b"}}).Increment();
  core::make_histogram(registry, "wait_seconds", "Waits", {}, {1}).Observe(2);
  for (const auto format : {core::exposition::text, core::exposition::openmetrics}) {
    const auto text = core::expose_with_process(registry, format, {{"landscape", "one\"2"}});
    BOOST_TEST(has_line(text, R"(events_total{a="b",landscape="one\"2"} 1)"));
    BOOST_TEST(has_line(text, R"(wait_seconds_bucket{landscape="one\"2",le="1"} 0)"));
    std::istringstream lines(text);
    std::string line;
    while (std::getline(lines, line)) {
      if (line.starts_with("#")) continue;
      BOOST_TEST(line.find(R"(landscape="one\"2")") != std::string::npos, line);
    }
  }
  BOOST_TEST(core::expose_with_process(registry, core::exposition::text).find("landscape") ==
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(registries_do_not_know_each_other) {
  core::metrics one;
  core::metrics other;
  core::make_counter(one, "events_total", "Events").Increment();
  BOOST_TEST(core::expose(other).empty());
}

BOOST_AUTO_TEST_CASE(bounds_for_latencies_grow) {
  const auto& bounds = core::latency_bounds();
  BOOST_TEST(std::ranges::is_sorted(bounds));
  BOOST_TEST((std::ranges::adjacent_find(bounds) == bounds.end()));
  BOOST_TEST(bounds.front() > 0);
}

BOOST_AUTO_TEST_CASE(threads_make_count_and_expose_at_once) {
  core::metrics registry;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) {
          core::make_counter(registry, "events_total", "Events").Increment();
          if (i % 50 == 0) core::expose(registry);
        }
      });
    }
  }
  BOOST_TEST(has_line(core::expose(registry), "events_total 600"));
}

BOOST_AUTO_TEST_CASE(snapshot_finds_sums_by_labels) {
  core::metrics registry;
  core::make_counter(registry, "made_total", "Things", {{"of", "wood"}, {"for", "a"}}).Increment(2);
  core::make_counter(registry, "made_total", "Things", {{"of", "wood"}, {"for", "b"}}).Increment(3);
  core::make_counter(registry, "made_total", "Things", {{"of", "iron"}, {"for", "b"}}).Increment(5);
  core::make_gauge(registry, "depth", "Depth").Set(7);
  auto& one = core::make_histogram(registry, "time_seconds", "Time", {{"of", "a"}}, {0.1, 1});
  auto& two = core::make_histogram(registry, "time_seconds", "Time", {{"of", "b"}}, {0.1, 1});
  one.Observe(0.05);
  one.Observe(5);
  two.Observe(0.5);
  const core::metrics_snapshot values(registry);
  core::make_gauge(registry, "depth", "Depth").Set(9);
  BOOST_TEST(values.sum("made_total") == 10);
  BOOST_TEST(values.sum("made_total", {{"of", "wood"}}) == 5);
  BOOST_TEST(values.sum("made_total", {{"of", "wood"}, {"for", "b"}}) == 3);
  BOOST_TEST(values.sum("made_total", {{"of", "stone"}}) == 0);
  BOOST_TEST(values.sum("depth") == 7);
  BOOST_TEST(values.sum("unknown") == 0);
  const auto times = values.histogram("time_seconds");
  BOOST_TEST(times.bounds == (std::vector<double>{0.1, 1}), boost::test_tools::per_element());
  BOOST_TEST(times.counts == (std::vector<double>{1, 2, 3}), boost::test_tools::per_element());
  BOOST_TEST(times.sum == 5.55, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(values.histogram("unknown").counts.empty());
}

BOOST_AUTO_TEST_SUITE_END()
