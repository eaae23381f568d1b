#include "core/metrics.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
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

BOOST_AUTO_TEST_CASE(the_same_name_and_labels_are_one_series) {
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

BOOST_AUTO_TEST_CASE(registries_do_not_know_each_other) {
  core::metrics one;
  core::metrics other;
  core::make_counter(one, "events_total", "Events").Increment();
  BOOST_TEST(core::expose(other).empty());
}

BOOST_AUTO_TEST_CASE(the_bounds_for_latencies_grow) {
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

BOOST_AUTO_TEST_SUITE_END()
