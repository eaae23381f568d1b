#include "rw/reactors/dev/source_watch.hpp"

#include "rw/k8s/objects/object.hpp"
#include "rw/reactors/config_sync/target.hpp"
#include "rw/reactors/shared/content_digest.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/config_sync/test_env.hpp"
#include <set>
#include <string>

BOOST_AUTO_TEST_SUITE(source_watch)

using namespace rw;
using namespace std::chrono_literals;
using rw::config_sync::digest_of;
using rw::config_sync::test::test_env;
namespace json = boost::json;

namespace {

std::string digest(std::string_view text, source which = source::config) {
  return digest_of(which, k8s::object::from_text(text));
}

/// A server on which ClusterTrustBundles can be hidden, and a watch on it.
struct watched : test_env {
  watched() {
    faults([this](const std::string&, const std::string& path) {
      k8s::devserver::fault wrong;
      const bool bundles = path.find("certificates.k8s.io") != std::string::npos;
      if (bundles && hidden) wrong.status = 404;
      if (bundles && broken) wrong.status = 500;
      if (together && !bundles) wrong.latency = 5s;
      return wrong;
    });
  }
  ~watched() {
    stop_watch();
    if (api_of_watch) finish(api_of_watch->close());
  }

  void start_watch() {
    api_of_watch = connect("kcp", {.name = "watch"});
    watch = std::make_unique<rw::dev::source_watch>(
        *api_of_watch, bootstrapper_sources{},
        k8s::informer_environment{clock, log, numbers, core::make_random_source()});
    listening = watch->subscribe([this] { ++changes; });
    running = std::make_unique<core::task_group>(context.get_executor());
    running->spawn(watch->run());
  }
  /// Of all content; empty until all is known.
  std::string digest() {
    std::string all;
    for (const auto which : all_sources) all += digest_of(which, watch->get(which));
    return watch->ready() ? all : std::string();
  }
  void stop_watch() {
    if (!running) return;
    running->cancel();
    finish(running->join());
    running.reset();
  }
  bool hidden = false;
  bool broken = false;
  bool together = false;  ///< all other answers come at the same moment
  int changes = 0;
  std::unique_ptr<k8s::client> api_of_watch;
  std::unique_ptr<rw::dev::source_watch> watch;
  std::shared_ptr<void> listening;
  std::unique_ptr<core::task_group> running;
};

}  // namespace

BOOST_AUTO_TEST_CASE(digest_is_of_content_and_not_of_metadata_or_order) {
  const auto one = digest(
      R"({"kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"1"},"data":{"k":"v","l":"w"}})");
  BOOST_TEST(one ==
             digest(R"({"data":{"l":"w","k":"v"},"metadata":{"name":"a","resourceVersion":"2",
                               "labels":{"x":"y"}},"kind":"ConfigMap"})"));
  std::set<std::string> different{one, digest_of(source::config, {})};
  for (const auto* text :
       {R"({"metadata":{"name":"a","resourceVersion":"1"},"data":{"k":"v"}})",
        R"({"metadata":{"name":"a","resourceVersion":"1"},"data":{"k":"vl","":"w"}})",
        R"({"metadata":{"name":"a","resourceVersion":"1"},"data":{"k":"w","l":"v"}})",
        R"({"metadata":{"name":"a","resourceVersion":"1"},"binaryData":{"k":"v","l":"w"}})",
        R"({"metadata":{"name":"a","resourceVersion":"1"},"type":"t","data":{"k":"v","l":"w"}})",
        R"({"metadata":{"name":"a","resourceVersion":"1"}})"}) {
    BOOST_TEST(different.insert(digest(text)).second, text);
  }
  BOOST_TEST(digest(R"({"metadata":{"name":"a","resourceVersion":"1"},"data":{}})") ==
             digest(R"({"metadata":{"name":"a","resourceVersion":"1"}})"));
  BOOST_TEST(digest(R"({"metadata":{"name":"a","resourceVersion":"1"}})") !=
             digest(R"({"metadata":{"name":"a","resourceVersion":"1"}})", source::manifests));
}

// Digests lie on objects: one that is computed otherwise would have every Runtime signalled.
BOOST_AUTO_TEST_CASE(digest_is_what_it_always_was) {
  content_digest all;
  all.add(std::string_view("a")).add(json::parse(R"({"b":["c",null,true,1],"a":{}})"));
  BOOST_TEST(all.hex() == "8e1e861be1716a0e4552bba6df15ca84");
}

BOOST_FIXTURE_TEST_CASE(sources_are_compared_once_every_source_is_known, watched) {
  put(source::config, "v1");
  broken = true;
  start_watch();
  pass(2min);
  BOOST_TEST(!watch->ready());
  BOOST_TEST(digest().empty());
  broken = false;
  pass(2min);
  BOOST_TEST(watch->ready());
  BOOST_TEST(!digest().empty());
}

BOOST_FIXTURE_TEST_CASE(first_report_has_all_sources, watched) {
  for (const auto which : all_sources) put(which, "v1");
  together = true;
  std::set<std::string> seen;
  for (int i = 0; i < 5; ++i) {
    start_watch();
    const auto mine = watch->subscribe([&] {
      if (watch->ready()) seen.insert(digest());
    });
    pass(30s);
    stop_watch();
    finish(api_of_watch->close());
    api_of_watch.reset();
  }
  BOOST_TEST(seen.size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(sources_are_all_seen_as_they_are, watched) {
  start_watch();
  pass(10s);
  BOOST_REQUIRE(watch->ready());
  std::set<std::string> digests{digest()};
  for (const auto which : all_sources) {
    BOOST_TEST(!watch->get(which));
    put(which, "v1");
    pass(1s);
    BOOST_TEST(static_cast<bool>(watch->get(which)));
    BOOST_TEST(digests.insert(digest()).second);
    put(which, "v2");
    pass(1s);
    BOOST_TEST(digests.insert(digest()).second);
  }
  const auto before = digest();
  remove(source::trust_bundle);
  pass(1s);
  BOOST_TEST(!watch->get(source::trust_bundle));
  BOOST_TEST(digest() != before);
}

BOOST_FIXTURE_TEST_CASE(server_without_trust_bundles_is_reported_once_and_the_others_go_on,
                        watched) {
  put(source::trust_bundle, "v1");
  hidden = true;
  start_watch();
  pass(10min);
  BOOST_REQUIRE(watch->ready());
  BOOST_TEST(!watch->get(source::trust_bundle));
  BOOST_TEST(lines("ClusterTrustBundles are not served;") == 1);
  const auto without = digest();
  put(source::config, "v2");
  pass(1s);
  BOOST_TEST(digest() != without);

  hidden = false;
  pass(2min);
  BOOST_TEST(static_cast<bool>(watch->get(source::trust_bundle)));
  const auto with = digest();
  put(source::trust_bundle, "v2");
  pass(1s);
  BOOST_TEST(digest() != with);

  // What was seen last stands.
  hidden = true;
  pass(30min);
  BOOST_TEST(static_cast<bool>(watch->get(source::trust_bundle)));
  BOOST_TEST(lines("ClusterTrustBundles are no longer served") == 1);
}

BOOST_AUTO_TEST_SUITE_END()
