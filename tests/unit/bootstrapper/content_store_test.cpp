// Contents that runtimes fall back to, as KCP keeps them.

#include "rw/reactors/shared/content_store.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/sync_env.hpp"
#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(content_store)

using store = rw::content_store;
using namespace std::chrono_literals;
using names = std::vector<std::string>;

namespace {

constexpr const char* source_annotation = "operator.kyma-project.io/source";
constexpr const char* contents_annotation = "operator.kyma-project.io/contents";
constexpr const char* content_annotation = "operator.kyma-project.io/content";

store open(sync_env* env) {
  return {*env->api("store"), "kyma-system", "content-", true};
}

json::value data_of(const char* value) {
  return {{"data", {{"a", value}}}};
}

/// What is rolled out, of two sources and one that does not exist.
json::value rolled_out(const char* configuration, const char* manifests) {
  return {{"configuration", data_of(configuration)},
          {"manifests", data_of(manifests)},
          {"trust bundle", nullptr},
          {"pull Secret removed", true}};
}

/// The Secrets whose annotation of this name is not empty, by it.
asio::awaitable<std::map<std::string, json::value>> secrets_by(sync_env* env,
                                                               const char* annotation) {
  const auto list = co_await env->api("store")->list(secrets_type(), {.ns = "kyma-system"});
  BOOST_REQUIRE(list.has_value());
  std::map<std::string, json::value> out;
  for (const auto& each : list->at("items").as_array()) {
    const std::string name(k8s::annotation(each, annotation));
    if (!name.empty()) out[name] = each;
  }
  co_return out;
}

asio::awaitable<void> update(sync_env* env, json::value secret) {
  const auto done = co_await env->api("store")->update(secrets_type(), std::move(secret));
  BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
}

asio::awaitable<void> must_store(store* into, std::string name, json::value value,
                                 bool in_parts = false) {
  const auto done = co_await into->store(std::move(name), make_content(std::move(value)), in_parts);
  BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
}

asio::awaitable<std::vector<json::value>> must_load(store* from, std::string name) {
  const auto got = co_await from->load(std::move(name));
  BOOST_REQUIRE_MESSAGE(got.has_value(), got.error().message);
  std::vector<json::value> out;
  for (const auto& each : *got) out.push_back(each->value);
  co_return out;
}

/// As the previous release reads a list.
json::value previous_form(const json::value& secret, const char* key = "newest") {
  return json::parse(k8s::secret_data(secret, key).value_or("null"));
}

}  // namespace

RW_COROUTINE_TEST(content_is_stored_once_under_its_digest, sync_env) {
  co_await env->add("store");
  auto stored = open(env);
  co_await must_store(&stored, "ConfigMap a", data_of("1"));
  co_await must_store(&stored, "ConfigMap b", data_of("1"));
  co_await must_store(&stored, "rolled out", rolled_out("1", "2"), true);
  co_await must_store(&stored, "rolled out", rolled_out("1", "3"), true);
  const auto contents = co_await secrets_by(env, content_annotation);
  BOOST_TEST(contents.size() == 3U);
  for (const auto* const each : {"1", "2", "3"}) {
    BOOST_TEST(contents.contains(digest_of(data_of(each))), each);
  }
  // The lists have nothing but digests, as those of the next release.
  auto lists = co_await secrets_by(env, source_annotation);
  for (auto& [name, each] : lists) {
    each.as_object().erase("data");
    co_await update(env, each);
  }
  auto next = open(env);
  auto got = co_await must_load(&next, "ConfigMap b");
  BOOST_TEST((got == std::vector{data_of("1")}));
  got = co_await must_load(&next, "rolled out");
  BOOST_TEST((got == std::vector{rolled_out("1", "3"), rolled_out("1", "2")}));
}

/// A manager of the previous release knows one form only, and writes no other.
RW_COROUTINE_TEST(lists_are_read_and_written_as_the_previous_release_does, sync_env) {
  co_await env->add("store");
  auto stored = open(env);
  co_await must_store(&stored, "ConfigMap a", data_of("1"));
  co_await must_store(&stored, "ConfigMap a", data_of("2"));
  co_await must_store(&stored, "rolled out", rolled_out("1", "2"), true);
  auto lists = co_await secrets_by(env, source_annotation);
  BOOST_TEST(previous_form(lists["ConfigMap a"]) == data_of("2"));
  BOOST_TEST(previous_form(lists["ConfigMap a"], "previous") == data_of("1"));
  BOOST_TEST(previous_form(lists["rolled out"]) == rolled_out("1", "2"));
  // It leads for a while, and its newest content is another one.
  for (auto& [name, each] : lists) {
    each.at("metadata").at("annotations").as_object().erase(contents_annotation);
    k8s::set_secret_data(each, "previous", k8s::secret_data(each, "newest").value());
    const auto newest = name == "ConfigMap a" ? data_of("3") : rolled_out("3", "3");
    k8s::set_secret_data(each, "newest", json::serialize(newest));
    co_await update(env, each);
  }
  auto next = open(env);
  auto got = co_await must_load(&next, "ConfigMap a");
  BOOST_TEST((got == std::vector{data_of("3"), data_of("2")}));
  got = co_await must_load(&next, "rolled out");
  BOOST_TEST((got == std::vector{rolled_out("3", "3"), rolled_out("1", "2")}));
  // What it wrote has digests as soon as it is stored again, changed or not.
  co_await must_store(&next, "ConfigMap a", data_of("3"));
  lists = co_await secrets_by(env, source_annotation);
  BOOST_TEST(json::parse(k8s::annotation(lists["ConfigMap a"], contents_annotation)) ==
             json::value({digest_of(data_of("3")), digest_of(data_of("2"))}));
  BOOST_TEST(previous_form(lists["ConfigMap a"], "previous") == data_of("2"));
  co_await must_store(&next, "rolled out", rolled_out("4", "3"), true);
  lists = co_await secrets_by(env, source_annotation);
  BOOST_TEST(previous_form(lists["rolled out"]) == rolled_out("4", "3"));
  auto last = open(env);
  got = co_await must_load(&last, "rolled out");
  BOOST_TEST((got == std::vector{rolled_out("4", "3"), rolled_out("3", "3")}));
}

/// Which of two contents is older is known of the last 32 before the listed ones.
RW_COROUTINE_TEST(contents_before_the_listed_ones_are_known_as_earlier, sync_env) {
  co_await env->add("store");
  auto stored = open(env);
  const auto digest = [](int number) { return digest_of(data_of(std::to_string(number).c_str())); };
  for (int i = 1; i <= 36; ++i) {
    co_await must_store(&stored, "Secret a", data_of(std::to_string(i).c_str()));
  }
  co_await must_store(&stored, "Secret a", data_of("30"));
  auto next = open(env);
  const auto got = co_await must_load(&next, "Secret a");
  BOOST_TEST((got == std::vector{data_of("30"), data_of("36")}));
  for (auto* const each : {&stored, &next}) {
    BOOST_TEST(!each->is_earlier("Secret a", digest(30)));
    BOOST_TEST(!each->is_earlier("Secret a", digest(36)));
    BOOST_TEST(each->is_earlier("Secret a", digest(35)));
    // Beside 30, which is listed again, 35 to 3.
    BOOST_TEST(each->is_earlier("Secret a", digest(3)));
    BOOST_TEST(!each->is_earlier("Secret a", digest(2)));
    BOOST_TEST(!each->is_earlier("Secret a", digest(37)));
    BOOST_TEST(!each->is_earlier("Secret b", digest(3)));
  }
}

RW_COROUTINE_TEST(content_with_another_digest_than_its_own_is_not_believed, sync_env) {
  co_await env->add("store");
  auto stored = open(env);
  co_await must_store(&stored, "ConfigMap a", data_of("1"));
  auto contents = co_await secrets_by(env, content_annotation);
  auto& secret = contents.begin()->second;
  k8s::set_secret_data(secret, "content", json::serialize(data_of("forged")));
  co_await update(env, secret);
  auto next = open(env);
  const auto found = co_await next.find(digest_of(data_of("1")));
  BOOST_TEST_REQUIRE(found.has_value());
  BOOST_TEST((*found == nullptr));
  const auto got = co_await must_load(&next, "ConfigMap a");  // by the other form
  BOOST_TEST((got == std::vector{data_of("1")}));
  co_await must_store(&next, "ConfigMap a", data_of("1"));
  contents = co_await secrets_by(env, content_annotation);
  BOOST_TEST(json::parse(k8s::secret_data(contents.begin()->second, "content").value()) ==
             data_of("1"));
}

RW_COROUTINE_TEST(sources_that_fit_one_by_one_are_stored_together, sync_env) {
  co_await env->add("store");
  auto stored = open(env);
  const std::string half(source_bytes / 2, 'x');
  const auto large = rolled_out(half.c_str(), ("y" + half).c_str());
  co_await must_store(&stored, "rolled out", large, true);
  auto next = open(env);
  auto got = co_await must_load(&next, "rolled out");
  BOOST_TEST((got == std::vector{large}));
  const auto refused = co_await stored.store(
      "rolled out", make_content(rolled_out((half + half).c_str(), "1")), true);
  BOOST_TEST_REQUIRE(refused.has_error());
  BOOST_TEST(refused.error().is(k8s::errc::too_large));
  auto last = open(env);
  got = co_await must_load(&last, "rolled out");
  BOOST_TEST((got == std::vector{large}));
}

RW_COROUTINE_TEST(content_too_large_to_be_stored_leaves_the_stored_one, sync_env) {
  co_await env->add("store");
  const auto small = make_content("a");
  store stored(*env->api("store"), "kyma-system", "content-");
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
  store restarted(*env->api("store"), "kyma-system", "content-");
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
  co_await env->add("store");
  store stored(*env->api("store"), "kyma-system", "content-");
  for (const std::string source : {"used", "unused", "used again", "written"}) {
    const auto done = co_await stored.store(source, make_content(json::value(source)));
    BOOST_TEST_REQUIRE(done.has_value());
  }
  std::string used_again;
  const std::function<bool(std::string_view)> is_used = [&](std::string_view source) {
    return source == "used" || source == used_again;
  };
  const core::time_point begin{};
  const auto collect = [&](store& of, core::duration after) {
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
  store next(*env->api("store"), "kyma-system", "content-");
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

namespace {

asio::awaitable<names> stored_contents(sync_env* env) {
  names out;
  const auto all = co_await secrets_by(env, content_annotation);
  for (const auto& [digest, secret] : all) {
    const auto content = json::parse(k8s::secret_data(secret, "content").value());
    out.emplace_back(k8s::find_string(content, {"data", "a"}));
  }
  std::ranges::sort(out);
  co_return out;
}

}  // namespace

RW_COROUTINE_TEST(content_that_nothing_names_is_deleted_after_the_whole_time, sync_env) {
  co_await env->add("store");
  auto stored = open(env);
  for (const auto* const each : {"1", "2", "3"}) {
    co_await must_store(&stored, "listed", data_of(each));
  }
  for (const auto* const each : {"in a status", "kept again"}) {
    const auto kept = co_await stored.keep(make_content(data_of(each)));
    BOOST_TEST_REQUIRE(kept.has_value());
  }
  const auto in_status = store::name_of(digest_of(data_of("in a status")));
  const std::function<bool(std::string_view)> is_used = [&](std::string_view name) {
    return name == "listed" || name == in_status;
  };
  const core::time_point begin{};
  auto done = co_await stored.collect(is_used, begin, 1h);
  BOOST_TEST_REQUIRE(done.has_value());
  const auto again = co_await stored.keep(make_content(data_of("kept again")));
  BOOST_TEST_REQUIRE(again.has_value());
  auto left = co_await stored_contents(env);
  BOOST_TEST(left == (names{"1", "2", "3", "in a status", "kept again"}));
  done = co_await stored.collect(is_used, begin + 1h, 1h);
  BOOST_TEST_REQUIRE(done.has_value());
  left = co_await stored_contents(env);
  BOOST_TEST(left == (names{"2", "3", "in a status", "kept again"}));
  // What is deleted by others, or was unused for too long, is stored again when it is kept.
  done = co_await stored.collect(is_used, begin + 2h, 1h);
  BOOST_TEST_REQUIRE(done.has_value());
  left = co_await stored_contents(env);
  BOOST_TEST(left == (names{"2", "3", "in a status"}));
  const auto all = co_await secrets_by(env, content_annotation);
  for (const auto& [digest, secret] : all) {
    co_await env->remove("store", secrets_type(), k8s::key_of(secret));
  }
  done = co_await stored.collect(is_used, begin + 3h, 1h);
  BOOST_TEST_REQUIRE(done.has_value());
  for (const auto* const each : {"in a status", "kept again"}) {
    const auto kept = co_await stored.keep(make_content(data_of(each)));
    BOOST_TEST_REQUIRE(kept.has_value());
  }
  co_await must_store(&stored, "listed", data_of("3"));
  left = co_await stored_contents(env);
  BOOST_TEST(left == (names{"3", "in a status", "kept again"}));
}

RW_COROUTINE_TEST(contents_go_with_the_last_list_that_has_them, sync_env) {
  co_await env->add("store");
  auto stored = open(env);
  co_await must_store(&stored, "ConfigMap a", data_of("1"));
  co_await must_store(&stored, "ConfigMap b", data_of("2"));
  co_await must_store(&stored, "rolled out", rolled_out("1", "3"), true);
  const std::function<bool(std::string_view)> is_used = [](std::string_view name) {
    return name == "rolled out";
  };
  const auto done = co_await stored.collect(is_used, {}, 0s);
  BOOST_TEST_REQUIRE(done.has_value());
  const auto left = co_await stored_contents(env);
  BOOST_TEST(left == (names{"1", "3"}));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
