// What a runtime has while it waits for its turn.

#include "rw/reactors/bootstrapper/rollout_turn.hpp"

#include "rw/reactors/shared/content_store.hpp"
#include "rw/reactors/shared/field_owners.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/sync_env.hpp"
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(rollout_turn)

using bootstrapper::revision;
using bootstrapper::revision_ptr;
using bootstrapper::unit;
using bootstrapper::unit_state;

namespace {

revision_ptr named(std::string digest) {
  revision out;
  out.digest = std::move(digest);
  return std::make_shared<const revision>(std::move(out));
}

unit_state newest_b(const char* in_place) {
  return {.revisions = {named("b"), named("a"), named("z")}, .desired = "b", .in_place = in_place};
}

std::vector<std::string> digests(const unit_state& of) {
  std::vector<std::string> out;
  for (const auto& each : of.revisions) out.push_back(each->digest);
  return out;
}

using list = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(waiting_runtime_keeps_the_revision_in_place) {
  auto of = newest_b("a");
  hold(of, named("c"));
  BOOST_TEST((digests(of) == list{"a"}));
  BOOST_TEST(of.desired == "a");
  BOOST_TEST(of.withheld->digest == "b");
}

BOOST_AUTO_TEST_CASE(runtime_with_nothing_gets_what_was_rolled_out_last) {
  auto of = newest_b("");
  hold(of, named("c"));
  BOOST_TEST((digests(of) == list{"c"}));
  BOOST_TEST(of.desired == "c");
  of = newest_b("");
  hold(of, nullptr);
  BOOST_TEST(of.revisions.empty());
  BOOST_TEST(of.desired.empty());
}

BOOST_AUTO_TEST_CASE(revision_in_place_that_is_not_stored_is_left_alone) {
  auto of = newest_b("lost");
  hold(of, named("c"));
  BOOST_TEST(of.revisions.empty());
  BOOST_TEST(of.desired == "lost");
  of = newest_b("c");
  hold(of, named("c"));
  BOOST_TEST((digests(of) == list{"c"}));
}

BOOST_AUTO_TEST_CASE(invalid_content_brings_no_other_stored_one) {
  unit_state of{.revisions = {named("stored"), named("a")}, .invalid = "a field", .in_place = "a"};
  hold(of, nullptr);
  BOOST_TEST((digests(of) == list{"a"}));
  BOOST_TEST(of.desired.empty());
  BOOST_TEST(of.withheld == nullptr);
}

BOOST_AUTO_TEST_CASE(runtime_on_its_way_to_the_newest_gets_there_if_nothing_else_is_known) {
  unit_state of{.revisions = {named("b")}, .desired = "b", .applying = "b"};
  hold(of, nullptr);
  BOOST_TEST((digests(of) == list{"b"}));
  BOOST_TEST(of.desired == "b");
  BOOST_TEST(of.withheld == nullptr);
  of = {.revisions = {named("b")}, .desired = "b", .applying = "b"};
  hold(of, named("a"));
  BOOST_TEST((digests(of) == list{"a"}));
  BOOST_TEST(of.withheld->digest == "b");
}

BOOST_AUTO_TEST_CASE(field_is_of_the_newer_revision_if_its_value_and_its_owner_say_so) {
  const std::string ours = "ours";
  const std::vector<std::string> others{"kim", "manager"};
  const auto older = json::parse(
      R"({"data": {"a": "1", "b": "1"}, "spec": {"containers": [{"name": "main", "image": "x:1"}], "finalizers": ["old"]}})");
  const auto newer = json::parse(
      R"({"data": {"a": "2", "c": "2"}, "spec": {"containers": [{"name": "main", "image": "x:2"}], "finalizers": ["new"]}})");
  const auto entry = [](const std::string& manager, const char* operation, const char* fields) {
    return json::value{
        {"manager", manager}, {"operation", operation}, {"fieldsV1", json::parse(fields)}};
  };
  const auto is_newer = [&](const char* live, std::vector<json::value> entries) {
    auto object = json::parse(live);
    object.as_object()["metadata"] = {
        {"managedFields", json::array(entries.begin(), entries.end())}};
    return has_newer_field(fields_of_others(object, others, ours), object, older, newer);
  };
  const char* const a_is_new = R"({"data": {"a": "2", "b": "1"}})";
  const char* const a = R"({"f:data": {".": {}, "f:a": {}}})";
  BOOST_TEST(is_newer(a_is_new, {entry("kim", "Apply", a)}));
  BOOST_TEST(is_newer(a_is_new, {entry("manager", "Update", a)}));
  BOOST_TEST(is_newer(a_is_new, {entry("kim", "Apply", R"({"f:data": {}})")}) ==
             false);  // b is not new
  BOOST_TEST(!is_newer(a_is_new, {}));
  BOOST_TEST(!is_newer(a_is_new, {entry(ours, "Apply", a)}));
  BOOST_TEST(!is_newer(a_is_new, {entry(ours, "Apply", a), entry("kim", "Apply", a)}));
  BOOST_TEST(!is_newer(a_is_new, {entry("somebody", "Apply", a)}));
  BOOST_TEST(!is_newer(R"({"data": {"a": "3"}})", {entry("kim", "Apply", a)}));
  BOOST_TEST(!is_newer(R"({"data": {"a": "1"}})", {entry("kim", "Apply", a)}));
  // A field that only the newer one has.
  BOOST_TEST(
      is_newer(R"({"data": {"c": "2"}})", {entry("kim", "Apply", R"({"f:data": {"f:c": {}}})")}));
  // Elements of lists.
  const char* const image =
      R"({"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {".": {}, "f:image": {}}}}})";
  BOOST_TEST(
      is_newer(R"({"spec": {"containers": [{"name": "side"}, {"name": "main", "image": "x:2"}]}})",
               {entry("kim", "Apply", image)}));
  BOOST_TEST(!is_newer(R"({"spec": {"containers": [{"name": "main", "image": "x:1"}]}})",
                       {entry("kim", "Apply", image)}));
  const char* const finalizer = R"({"f:spec": {"f:finalizers": {"v:\"new\"": {}}}})";
  BOOST_TEST(is_newer(R"({"spec": {"finalizers": ["new"]}})", {entry("kim", "Apply", finalizer)}));
  BOOST_TEST(!is_newer(R"({"spec": {"finalizers": ["old"]}})", {entry("kim", "Apply", finalizer)}));
}

RW_COROUTINE_TEST(content_too_large_to_be_stored_leaves_the_stored_one, sync_env) {
  co_await env->add("store");
  const auto small = make_content("a");
  content_store stored(*env->api("store"), "kyma-system", "content-");
  const auto first = co_await stored.store("completed", small);
  BOOST_TEST(first.has_value());
  const std::string half(source_bytes / 2, 'x');
  const json::value both{half, half};
  const auto large = co_await stored.store("completed", make_content(both));
  BOOST_TEST_REQUIRE(large.has_error());
  BOOST_TEST(large.error().is(k8s::errc::too_large));
  BOOST_TEST(large.error().message == "it has " + std::to_string(json::serialize(both).size()) +
                                          " bytes, more than " + std::to_string(source_bytes) +
                                          " that can be stored");
  content_store restarted(*env->api("store"), "kyma-system", "content-");
  for (auto* const each : {&stored, &restarted}) {
    const auto loaded = co_await each->load("completed");
    BOOST_TEST_REQUIRE(loaded.has_value());
    BOOST_TEST_REQUIRE(loaded->size() == 1u);
    BOOST_TEST(loaded->front()->digest == small->digest);
  }
}

namespace {

/// The sources of which contents are stored.
asio::awaitable<std::vector<std::string>> stored_sources(sync_env* env) {
  const auto list = co_await env->api("store")->list(secrets_type(), {.ns = "kyma-system"});
  BOOST_REQUIRE(list.has_value());
  std::vector<std::string> out;
  for (const auto& each : list->at("items").as_array()) {
    out.emplace_back(k8s::annotation(each, "operator.kyma-project.io/source"));
  }
  std::ranges::sort(out);
  co_return out;
}

}  // namespace

RW_COROUTINE_TEST(content_is_deleted_only_after_it_was_unused_for_the_whole_time, sync_env) {
  using namespace std::chrono_literals;
  using names = std::vector<std::string>;
  co_await env->add("store");
  content_store stored(*env->api("store"), "kyma-system", "content-");
  for (const std::string source : {"used", "unused", "used again", "written"}) {
    const auto done = co_await stored.store(source, make_content(json::value(source)));
    BOOST_TEST_REQUIRE(done.has_value());
  }
  std::string used_again;
  const std::function<bool(std::string_view)> is_used = [&](std::string_view source) {
    return source == "used" || source == used_again;
  };
  const core::time_point begin{};
  const auto collect = [&](content_store& of, core::duration after) {
    return of.collect(is_used, begin + after, 1h);
  };
  const names all{"unused", "used", "used again", "written"};
  auto done = co_await collect(stored, 0min);
  BOOST_TEST_REQUIRE(done.has_value());
  auto left = co_await stored_sources(env);
  BOOST_TEST(left == all);
  used_again = "used again";
  done = co_await collect(stored, 30min);
  BOOST_TEST_REQUIRE(done.has_value());
  used_again.clear();
  const auto written = co_await stored.store("written", make_content("new"));
  BOOST_TEST_REQUIRE(written.has_value());
  done = co_await collect(stored, 59min);
  BOOST_TEST_REQUIRE(done.has_value());
  left = co_await stored_sources(env);
  BOOST_TEST(left == all);
  // The next leader does not know since when they were unused.
  content_store next(*env->api("store"), "kyma-system", "content-");
  done = co_await collect(next, 2h);
  BOOST_TEST_REQUIRE(done.has_value());
  left = co_await stored_sources(env);
  BOOST_TEST(left == all);
  done = co_await collect(stored, 60min);
  BOOST_TEST_REQUIRE(done.has_value());
  left = co_await stored_sources(env);
  BOOST_TEST(left == (names{"used", "used again", "written"}));
  done = co_await collect(stored, 119min);
  BOOST_TEST_REQUIRE(done.has_value());
  left = co_await stored_sources(env);
  BOOST_TEST(left == (names{"used"}));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
