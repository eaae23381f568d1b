// What a leader leaves for the next one.

#include "rw/reactors/watcher_installer/cluster_records.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/watcher_installer/world.hpp"
#include <array>
#include <chrono>
#include <optional>
#include <string>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(cluster_records)

using namespace std::chrono_literals;
using std::chrono::system_clock;
using test::eventually;
using watcher_installer::cluster_record;
using watcher_installer::installer_options;
using state = runtime_state;

namespace {

constexpr const char* records_namespace = "runtime-watcher-system";
const k8s::object_key skr{"kcp-system", "skr"};
const system_clock::time_point since = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);

std::string uid(int i) {
  const auto number = std::to_string(i);
  return "f81d4fae-7dec-11d0-a765-" + std::string(12 - number.size(), '0') + number;
}

cluster_record failing() {
  return {.clusters = {"0123456789abcdef0123", "fedcba9876543210fedc"},
          .fault = cluster_error{status_reason::runtime_unreachable, cluster_fault::tenant, since}};
}

installer_options quick() {
  auto out = quick_options();
  out.record_interval = 50ms;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(record_is_read_as_it_was_written) {
  const cluster_record well{.clusters = {"0123456789abcdef0123"}};
  const auto text = watcher_installer::render_record(uid(1), failing()) +
                    watcher_installer::render_record(uid(2), well) +
                    watcher_installer::render_record(uid(3), {});
  const auto read = watcher_installer::parse_records(text);
  BOOST_TEST(read.size() == 3U);
  BOOST_TEST((read.at(uid(1)) == failing()));
  BOOST_TEST((read.at(uid(2)) == well));
  BOOST_TEST((read.at(uid(3)) == cluster_record()));
}

BOOST_AUTO_TEST_CASE(damaged_line_costs_its_own_runtime_only) {
  const auto good = watcher_installer::render_record(uid(1), failing());
  for (const std::string bad :
       {"\n", "no-uid\n", " \n", "a b c d e f\n", "a b 12x RuntimeUnreachable\n",
        "a b 99999999999999999999 RuntimeUnreachable\n", "a b 12 NoSuchReason\n",
        "a b -5 Contested\n", "a b 12\n", "\xff\xfe\n", "a b 12 CertificateInvalid garbage\n"}) {
    const auto read = watcher_installer::parse_records(bad + good + bad.substr(0, bad.size() - 1));
    BOOST_TEST_CONTEXT(bad) {
      BOOST_REQUIRE(read.contains(uid(1)));
      BOOST_TEST((read.at(uid(1)) == failing()));
      for (const auto& [each, record] : read) BOOST_TEST((each == uid(1) || !record.fault));
    }
  }
}

BOOST_AUTO_TEST_CASE(objects_of_25000_runtimes_are_below_256_kib) {
  std::array<std::size_t, watcher_installer::record_slots> bytes{};
  for (int i = 0; i < 25000; ++i) {
    bytes[watcher_installer::record_slot(uid(i))] +=
        watcher_installer::render_record(uid(i), failing()).size();
  }
  for (const auto each : bytes) {
    BOOST_TEST(each > 0U);
    BOOST_TEST(each * 4 / 3 < 256U * 1024U, "as a Secret has it, in base64: " << each * 4 / 3);
  }
}

// --- across leaders --------------------------------------------------------------------

/// All records, after their versions.
asio::awaitable<std::string> stored(world* w) {
  const auto all = co_await w->api("kcp").list(secrets_type(), {.ns = records_namespace});
  const auto list = test::required(all);
  std::string out;
  for (const auto& one : *k8s::find_array(list, {"items"})) {
    out += k8s::resource_version_of(one);
    out += "\n" + k8s::secret_data(one, "clusters").value_or(std::string());
  }
  co_return out;
}

/// Waits until a record has `text`.
asio::awaitable<bool> until_recorded(world* w, std::string text) {
  const auto limit = w->clock.now() + test::patience;
  const auto timer = w->clock.make_timer(w->context.get_executor());
  for (;;) {
    const auto records = co_await stored(w);
    const bool done = records.find(text) != std::string::npos;
    if (done || w->clock.now() > limit) co_return done;
    timer->expires_at(w->clock.now() + 20ms);
    co_await timer->wait();
  }
}

asio::awaitable<std::string> uid_of(world* w, std::string kyma) {
  const auto got = co_await w->api("kcp").get(kymas_type(), {"kcp-system", std::move(kyma)});
  co_return std::string(k8s::uid_of(got.value()));
}

asio::awaitable<void> keeps_the_owner(world* w) {
  co_await w->begin();
  w->add_cluster("skr");
  w->add_cluster("other");
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  co_await w->add_kyma("older", w->kubeconfig("other"));
  // The creation time, which decides without a record, has whole seconds.
  const auto second = std::chrono::floor<std::chrono::seconds>(system_clock::now());
  bool good = co_await eventually([second] { return system_clock::now() >= second + 1s; });
  BOOST_TEST(good);
  co_await w->add_kyma("skr", w->kubeconfig("skr"));
  good = co_await w->until_ready("skr");
  BOOST_REQUIRE(good);
  const auto owner = co_await uid_of(w, "skr");
  good = co_await until_recorded(w, owner);
  BOOST_REQUIRE(good);
  co_await w->stop();
  co_await w->set_kubeconfig("older", "older", w->kubeconfig("skr"));
  co_await w->take_over(quick());
  good = co_await w->until_event("older", "WatcherFailed", "also Kyma skr");
  BOOST_TEST(good);
  BOOST_TEST(!w->tracker.is_duplicate(skr));
  // Without the records the older one is the owner.
  co_await w->stop();
  for (std::size_t i = 0; i < watcher_installer::record_slots; ++i) {
    const k8s::object_key slot{records_namespace, watcher_installer::record_name(i)};
    const auto removed = co_await w->api("kcp").remove(secrets_type(), slot);
    BOOST_TEST((removed || removed.error().is(k8s::errc::not_found)));
  }
  co_await w->take_over(quick());
  good = co_await w->until_event("skr", "WatcherFailed", "also Kyma older");
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(owner_stays_the_owner_across_leaders) {
  world w(quick());
  test::run(w.context, keeps_the_owner(&w));
}

asio::awaitable<void> keeps_since_when(world* w) {
  co_await w->begin();
  w->add_cluster("skr");
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  w->on_request = [](const auto& cluster, const auto& verb, const auto&) {
    return k8s::devserver::fault{.status = cluster == "skr" && !test::reads(verb) ? 403U : 0U};
  };
  co_await w->add_kyma("skr", w->kubeconfig("skr"));
  bool good = co_await until_recorded(w, "AccessDenied");
  BOOST_REQUIRE(good);
  const auto before = w->tracker.find(skr)->own_fault_since();
  BOOST_REQUIRE(before.has_value());
  const auto second = std::chrono::floor<std::chrono::seconds>(system_clock::now());
  good = co_await eventually([second] { return system_clock::now() >= second + 2s; });
  BOOST_TEST(good);
  co_await w->take_over(quick());
  const auto now = [w] {
    const auto* const found = w->tracker.find(skr);
    return found == nullptr ? std::nullopt : found->own_fault_since();
  };
  good = co_await eventually([&] { return now().has_value(); });
  BOOST_TEST(good);
  BOOST_TEST((std::chrono::floor<std::chrono::seconds>(*now()) ==
              std::chrono::floor<std::chrono::seconds>(*before)));
  // It converges: the next fault is another.
  w->on_request = {};
  good = co_await w->until_ready("skr");
  BOOST_TEST(good);
  good = co_await eventually([&] { return !now(); });
  BOOST_TEST(good);
  BOOST_TEST(!w->tracker.find(skr)->own_fault);
}

BOOST_AUTO_TEST_CASE(since_when_a_runtime_fails_survives_a_leader) {
  world w(quick());
  test::run(w.context, keeps_since_when(&w));
}

/// A runtime that is ready, and whose record is in KCP; the uid of its Kyma.
asio::awaitable<std::string> begin_recorded(world* w) {
  co_await w->begin();
  w->add_cluster("skr");
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  co_await w->add_kyma("skr", w->kubeconfig("skr"));
  bool good = co_await w->until_ready("skr");
  BOOST_REQUIRE(good);
  auto uid = co_await uid_of(w, "skr");
  good = co_await until_recorded(w, uid);
  BOOST_REQUIRE(good);
  co_return uid;
}

asio::awaitable<void> survives_damage(world* w) {
  const auto owner = co_await begin_recorded(w);
  co_await w->stop();
  for (std::size_t i = 0; i < watcher_installer::record_slots; ++i) {
    const k8s::object_key key{records_namespace, watcher_installer::record_name(i)};
    const auto present = co_await w->api("kcp").get(secrets_type(), key);
    if (!present) continue;
    json::value change = json::object();
    k8s::set_secret_data(change, "clusters", std::string("\xff\x00garbage\n", 10));
    co_await w->merge(secrets_type(), key, std::move(change));
  }
  co_await w->take_over(quick());
  const bool good = co_await until_recorded(w, owner);
  BOOST_TEST(good, "it is written again");
  BOOST_TEST(w->metric("rw_watcher_installer_records_not_kept") == 0);
}

BOOST_AUTO_TEST_CASE(damaged_records_start_anew) {
  world w(quick());
  test::run(w.context, survives_damage(&w));
}

asio::awaitable<void> lacks_the_right(world* w) {
  co_await w->begin();
  w->add_cluster("skr");
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  w->server.faults("kcp").decide = [](const auto&, const auto& path) {
    const bool record = path.find(records_namespace) != std::string::npos;
    return k8s::devserver::fault{.status = record ? 403U : 0U};
  };
  co_await w->take_over(quick());
  co_await w->add_kyma("skr", w->kubeconfig("skr"));
  bool good = co_await w->until_ready("skr");
  BOOST_TEST(good, "all else goes on");
  good =
      co_await eventually([w] { return w->metric("rw_watcher_installer_records_not_kept") == 1; });
  BOOST_TEST(good);
  w->server.faults("kcp").decide = {};
  const auto owner = co_await uid_of(w, "skr");
  good = co_await until_recorded(w, owner);
  BOOST_TEST(good, "without a restart");
  good =
      co_await eventually([w] { return w->metric("rw_watcher_installer_records_not_kept") == 0; });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(missing_right_to_the_records_stops_nothing_else) {
  world w(quick());
  test::run(w.context, lacks_the_right(&w));
}

asio::awaitable<void> writes_on_change_only(world* w) {
  co_await begin_recorded(w);
  const auto before = co_await stored(w);
  for (int i = 0; i < 5; ++i) {
    const auto passes = w->passes();
    w->installer->requeue(skr);
    const bool passed = co_await eventually([w, passes] { return w->passes() > passes; });
    BOOST_TEST(passed);
  }
  co_await w->take_over(quick());
  const auto passes = w->passes();
  const bool good = co_await eventually([w, passes] { return w->passes() > passes; });
  BOOST_TEST(good);
  const auto after = co_await stored(w);
  BOOST_TEST(after == before);
}

asio::awaitable<void> puts_right(world* w) {
  co_await begin_recorded(w);
  const auto owner = co_await uid_of(w, "skr");
  const k8s::object_key key{records_namespace,
                            watcher_installer::record_name(watcher_installer::record_slot(owner))};
  co_await w->remove("kcp", secrets_type(), key);
  bool good = co_await until_recorded(w, owner);
  BOOST_TEST(good, "nothing else has changed");
  json::value change{{"data", {{"clusters", "ZGFtYWdlZA=="}}}};
  co_await w->merge(secrets_type(), key, std::move(change));
  good = co_await until_recorded(w, owner);
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(record_that_is_deleted_or_damaged_is_written_again) {
  world w(quick());
  test::run(w.context, puts_right(&w));
}

BOOST_AUTO_TEST_CASE(record_is_written_when_it_changes_only) {
  world w(quick());
  test::run(w.context, writes_on_change_only(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
