// A sync is cut short, or refused, at each of its writes in turn. Whoever comes after must leave
// the whole new set on the runtime, or the whole former one.

#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/runtime.hpp"
#include "tests/unit/run.hpp"
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(crash)

using bootstrapper::known_set;
using bootstrapper::sources_of_set;

namespace {

const std::string extra = R"(---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: kyma-system}
data: {a: b}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME}
rules: []
)";

std::string extra_named(const std::string& name) {
  auto text = extra;
  for (auto at = text.find("NAME"); at != text.npos; at = text.find("NAME")) {
    text.replace(at, 4, name);
  }
  return text;
}

/// Everything differs from one to the next: each object's content, and which there are.
sources_of_set generation(const std::string& pem, const std::string& version,
                          const std::string& extra_name) {
  auto out = good_sources(pem, version);
  out.manifests.text = manifests(version, extra_named(extra_name));
  out.pull_secret.object = pull_secret("password of " + version);
  out.configuration.object = config_map(good_configuration("registry-" + version + ".example.com"));
  // A field that the others do not have.
  out.configuration.object.as_object()["data"].as_object()["of-" + version] = "x";
  return out;
}

struct generations {
  sources_of_set first = generation(ca_pem("first"), "1.0.0", "old");
  sources_of_set second = generation(ca_pem("second"), "2.0.0", "new");
  sources_of_set third = generation(ca_pem("third"), "3.0.0", "newest");
};

bootstrapper::sync_request nothing_valid() {
  return {.subject = subject,
          .invalid = "the source is broken",
          .now = std::chrono::system_clock::now()};
}

asio::awaitable<void> with_first(runtimes_world* w, std::string name, const generations* all) {
  co_await w->add(name);
  co_await w->must_sync(name, request_for(all->first));
}

/// The sync of the second generation stops after `k` writes; true if it did not get to them.
asio::awaitable<bool> stop_after(runtimes_world* w, std::string name, int k,
                                 const generations* all) {
  w->faults[name] = {.stop_after = k};
  const auto report = co_await w->sync(name, request_for(all->second));
  const bool whole = report.has_value();
  w->faults[name] = {};
  co_return whole;
}

/// Whatever was cut short says so itself.
asio::awaitable<void> check_marked(runtimes_world* w, std::string name, const generations* all) {
  const bool first = co_await w->has(name, set_of(all->first), set_of(all->second));
  const bool second = co_await w->has(name, set_of(all->second), set_of(all->first));
  const auto phase = co_await w->phase(name);
  BOOST_TEST((first || second || phase == "applying"), name << " is half way and " << phase);
}

asio::awaitable<void> ends_with_the_new_set(runtimes_world* w, const generations* all) {
  bool whole = false;
  int k = 0;
  for (; !whole && k < 60; ++k) {
    const auto name = "skr-" + std::to_string(k);
    co_await with_first(w, name, all);
    whole = co_await stop_after(w, name, k, all);
    co_await check_marked(w, name, all);
    const auto report = co_await w->must_sync(name, request_for(all->second));
    BOOST_TEST(report.refused == "");
    const bool good = co_await w->has(name, set_of(all->second), set_of(all->first));
    BOOST_TEST(good, "stopped after " << k << " writes");
    const auto phase = co_await w->phase(name);
    BOOST_TEST(phase == "settled");
    const auto again = co_await w->must_sync(name, request_for(all->second));
    BOOST_TEST(again.writes == 0U);
  }
  BOOST_TEST(whole);
  BOOST_TEST(k > 17);  // dry runs, piece, record, objects, removals, record, former piece
}

}  // namespace

BOOST_AUTO_TEST_CASE(after_a_crash_at_any_write_the_new_set_is_brought_to_its_end) {
  runtimes_world w;
  const generations all;
  test::run(w.context, ends_with_the_new_set(&w, &all));
}

asio::awaitable<void> ends_whole_without_sources(runtimes_world* w, const generations* all) {
  bool whole = false;
  int new_ones = 0;
  int old_ones = 0;
  for (int k = 0; !whole && k < 60; ++k) {
    const auto name = "skr-" + std::to_string(k);
    co_await with_first(w, name, all);
    whole = co_await stop_after(w, name, k, all);
    const auto phase = co_await w->phase(name);
    const auto report = co_await w->must_sync(name, nothing_valid());
    BOOST_TEST(report.refused == "the source is broken");
    const bool first = co_await w->has(name, set_of(all->first), set_of(all->second));
    const bool second = co_await w->has(name, set_of(all->second), set_of(all->first));
    BOOST_TEST((first || second), "a mixture after " << k << " writes");
    if (phase == "applying") BOOST_TEST(second, "not brought to its end after " << k << " writes");
    const auto& digest = first ? set_of(all->first).digest : set_of(all->second).digest;
    BOOST_TEST(report.digest == digest);
    old_ones += first ? 1 : 0;
    new_ones += second ? 1 : 0;
  }
  BOOST_TEST(whole);
  BOOST_TEST(new_ones > 0);
  BOOST_TEST(old_ones > 0);
}

BOOST_AUTO_TEST_CASE(after_a_crash_the_set_is_whole_though_its_sources_have_become_invalid) {
  runtimes_world w;
  const generations all;
  test::run(w.context, ends_whole_without_sources(&w, &all));
}

asio::awaitable<void> ends_with_a_newer_set(runtimes_world* w, const generations* all) {
  bool whole = false;
  for (int k = 0; !whole && k < 60; k += 2) {
    const auto name = "skr-" + std::to_string(k);
    co_await with_first(w, name, all);
    whole = co_await stop_after(w, name, k, all);
    co_await w->must_sync(name, request_for(all->third));
    bool good = co_await w->has(name, set_of(all->third), set_of(all->second));
    BOOST_TEST(good, "stopped after " << k << " writes");
    good = co_await w->has(name, set_of(all->third), set_of(all->first));
    BOOST_TEST(good, "stopped after " << k << " writes");
  }
  BOOST_TEST(whole);
}

BOOST_AUTO_TEST_CASE(a_newer_set_supersedes_one_that_was_cut_short) {
  runtimes_world w;
  const generations all;
  test::run(w.context, ends_with_a_newer_set(&w, &all));
}

asio::awaitable<void> ends_with_the_first_set(runtimes_world* w, const generations* all) {
  bool whole = false;
  for (int k = 0; !whole && k < 60; ++k) {
    const auto name = "skr-" + std::to_string(k);
    co_await w->add(name, true);
    whole = co_await stop_after(w, name, k, all);
    co_await w->must_sync(name, request_for(all->second));
    const bool good = co_await w->has(name, set_of(all->second), {});
    BOOST_TEST(good, "stopped after " << k << " writes");
  }
  BOOST_TEST(whole);
}

BOOST_AUTO_TEST_CASE(a_first_installation_that_was_cut_short_is_brought_to_its_end) {
  runtimes_world w;
  const generations all;
  test::run(w.context, ends_with_the_first_set(&w, &all));
}

asio::awaitable<void> goes_back(runtimes_world* w, const generations* all) {
  int rolled_back = 0;
  for (int k = 1; k < 60; ++k) {
    const auto name = "skr-" + std::to_string(k);
    co_await with_first(w, name, all);
    w->faults[name] = {.refuse = k};
    auto request = request_for(all->second);
    auto report = co_await w->sync(name, request);
    const bool reached = w->faults[name].seen >= k;
    w->faults[name] = {};
    if (!reached) break;
    // A refusal of what puts the former set back is tried again.
    if (!report) report = co_await w->must_sync(name, request);
    const bool first = co_await w->has(name, set_of(all->first), set_of(all->second));
    const bool second = co_await w->has(name, set_of(all->second), set_of(all->first));
    BOOST_TEST((first || second), "a mixture after the refusal of write " << k);
    BOOST_TEST((second || !report->refused.empty()));
    rolled_back += report->rolled_back ? 1 : 0;
    const auto phase = co_await w->phase(name);
    BOOST_TEST(phase == "settled");
    // It is left alone for a while, then tried again.
    const auto soon = co_await w->must_sync(name, request);
    if (report->rolled_back) BOOST_TEST(soon.refused != "");
    request.now += std::chrono::hours(1);
    co_await w->must_sync(name, request);
    const bool good = co_await w->has(name, set_of(all->second), set_of(all->first));
    BOOST_TEST(good, "after the refusal of write " << k);
  }
  BOOST_TEST(rolled_back > 8);
}

BOOST_AUTO_TEST_CASE(a_write_that_is_refused_puts_the_former_set_back) {
  runtimes_world w;
  const generations all;
  test::run(w.context, goes_back(&w, &all));
}

/// Many objects, and time for some of them only in each look.
asio::awaitable<void> gets_there(runtimes_world* w) {
  co_await w->add("skr");
  auto from = good_sources(ca_pem());
  std::string many;
  for (int i = 0; i < 30; ++i) many += extra_named("large-" + std::to_string(i));
  from.manifests.text = manifests("1.0.0", many);
  const auto all = set_of(from);
  const int looks = 6;
  bool whole = false;
  for (int i = 0; !whole && i < looks; ++i) {
    // Enough for the dry runs, which are not made again, and a part of the set; then for a part.
    const int part = 25;
    const int dry_runs = static_cast<int>(all.items.size());
    w->faults["skr"] = {.stop_after = i == 0 ? dry_runs + part : part};
    const auto report = co_await w->sync("skr", request_for(from));
    whole = report.has_value();
  }
  BOOST_TEST(whole);
  w->faults["skr"] = {};
  const bool good = co_await w->has("skr", all, {});
  BOOST_TEST(good);
  const auto phase = co_await w->phase("skr");
  BOOST_TEST(phase == "settled");
}

BOOST_AUTO_TEST_CASE(a_set_that_is_cut_short_each_time_gets_there_part_by_part) {
  runtimes_world w;
  test::run(w.context, gets_there(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
