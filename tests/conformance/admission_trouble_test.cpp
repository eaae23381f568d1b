#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "webhook.hpp"
#include <future>
#include <string>

BOOST_AUTO_TEST_SUITE(admission_trouble)

using namespace rw;
using namespace rw::conformance;

namespace {

/// A webhook that takes its time, or fails.
struct troubled : hooked {
  /// Begins a request and waits until the webhook, which holds it, is asked about it.
  template <class T>
  std::future<k8s::result<T>> held(boost::asio::awaitable<k8s::result<T>> request) {
    hook.requests();
    hook.hold();
    auto pending =
        boost::asio::co_spawn(server.here.context, std::move(request), boost::asio::use_future);
    eventually([&] { return hook.is_holding(); });
    return pending;
  }

  /// What becomes of it when the webhook answers.
  template <class T>
  k8s::result<T> released(std::future<k8s::result<T>> pending) {
    hook.release();
    BOOST_REQUIRE((pending.wait_for(http::test::patience) == std::future_status::ready));
    return pending.get();
  }

  void fails_when_the_webhook_sends(unsigned status, std::string body) {
    watch_config_maps();
    hook.send(status, std::move(body));
    const auto why = failed(api.create(config_maps, here(config_map("a"))));
    BOOST_TEST(why.status == 500u);
    BOOST_TEST(why.message.find("failed calling webhook \"" + hook.name() + "\"") !=
               std::string::npos);
    BOOST_TEST(!there(config_maps, "a"));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(requests_of_others_go_on_while_a_webhook_thinks, troubled) {
  watch_config_maps();
  auto pending = held(api.create(config_maps, here(config_map("a"))));
  BOOST_TEST(!there(config_maps, "a"));
  create(config_maps, config_map("b"));
  create(secrets, object(secrets, "a"));
  BOOST_TEST(released(std::move(pending)).has_value());
  BOOST_TEST(there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(patch_that_another_write_overtook_is_judged_again, troubled) {
  create(config_maps, config_map("a", {{"k", "1"}}));
  watch_config_maps();
  auto pending = held(
      api.patch(config_maps, key("a"), k8s::patch_type::merge, parse(R"({"data": {"l": "2"}})")));
  merge(config_maps, "a", R"({"data": {"m": "3"}})");
  const auto done = released(std::move(pending));
  BOOST_TEST_REQUIRE(done.has_value());
  BOOST_TEST(done->at("data") == parse(R"({"k": "1", "l": "2", "m": "3"})"));
  const auto asked = hook.requests();
  BOOST_TEST_REQUIRE(asked.size() == 3u);
  BOOST_TEST(asked[0].at_pointer("/object/data") == parse(R"({"k": "1", "l": "2"})"));
  BOOST_TEST(asked[2].at_pointer("/oldObject/data") == parse(R"({"k": "1", "m": "3"})"));
  BOOST_TEST(asked[2].at_pointer("/object/data") == done->at("data"));
}

BOOST_FIXTURE_TEST_CASE(update_that_another_write_overtook_is_a_conflict, troubled) {
  const auto made = create(config_maps, config_map("a", {{"k", "1"}}));
  watch_config_maps();
  auto pending = held(api.update(config_maps, with(made, "/data/k", "2")));
  merge(config_maps, "a", R"({"data": {"k": "3"}})");
  const auto done = released(std::move(pending));
  BOOST_TEST_REQUIRE(done.has_error());
  BOOST_TEST(done.error().status == 409u);
  BOOST_TEST(done.error().reason == "Conflict");
  BOOST_TEST(text(get(config_maps, "a"), "/data/k") == "3");
}

BOOST_FIXTURE_TEST_CASE(creation_that_another_overtook_finds_the_name_taken, troubled) {
  watch_config_maps();
  auto pending = held(api.create(config_maps, here(config_map("a", {{"k", "1"}}))));
  create(config_maps, config_map("a", {{"k", "2"}}));
  const auto done = released(std::move(pending));
  BOOST_TEST_REQUIRE(done.has_error());
  BOOST_TEST(done.error().reason == "AlreadyExists");
  BOOST_TEST(text(get(config_maps, "a"), "/data/k") == "2");
}

BOOST_FIXTURE_TEST_CASE(apply_that_another_overtook_is_an_update, troubled) {
  watch_config_maps();
  auto pending = held(api.apply(config_maps, here(config_map("a", {{"k", "1"}}))));
  create(config_maps, config_map("a", {{"l", "2"}}));
  const auto done = released(std::move(pending));
  BOOST_TEST_REQUIRE(done.has_value());
  BOOST_TEST(done->at("data") == parse(R"({"k": "1", "l": "2"})"));
  const auto asked = hook.requests();
  BOOST_TEST_REQUIRE(asked.size() == 3u);
  BOOST_TEST(text(asked[2], "/operation") == "UPDATE");
}

BOOST_FIXTURE_TEST_CASE(object_deleted_during_admission_is_not_found, troubled) {
  create(config_maps, config_map("a"));
  hook.call_for(boost::json::array{rule(config_maps, {"UPDATE"})});
  auto pending = held(
      api.patch(config_maps, key("a"), k8s::patch_type::merge, parse(R"({"data": {"l": "2"}})")));
  remove(config_maps, "a");
  const auto done = released(std::move(pending));
  BOOST_TEST_REQUIRE(done.has_error());
  BOOST_TEST(done.error().status == 404u);
  BOOST_TEST(!there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(deletion_of_an_object_changed_during_admission_is_reviewed_again,
                        troubled) {
  create(config_maps, config_map("a", {{"k", "1"}}));
  watch_config_maps();
  auto pending = held(api.remove(config_maps, key("a")));
  merge(config_maps, "a", R"({"data": {"k": "2"}})");
  hook.answer(deny);
  const auto done = released(std::move(pending));
  BOOST_TEST(done.has_error());
  BOOST_TEST(there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(webhook_that_talks_nonsense_fails_the_request, troubled) {
  fails_when_the_webhook_sends(200, "I had rather not say");
}

BOOST_FIXTURE_TEST_CASE(webhook_that_says_nothing_fails_the_request, troubled) {
  fails_when_the_webhook_sends(200, "");
}

BOOST_FIXTURE_TEST_CASE(webhook_that_breaks_fails_the_request, troubled) {
  fails_when_the_webhook_sends(500, "oops");
}

BOOST_FIXTURE_TEST_CASE(webhook_that_hangs_up_fails_the_request, troubled) {
  fails_when_the_webhook_sends(0, "");
}

BOOST_FIXTURE_TEST_CASE(webhook_with_a_bundle_that_holds_no_certificate_fails_the_request,
                        troubled) {
  watch_config_maps({{"clientConfig", {{"url", hook.url()}, {"caBundle", "bm90aGluZw=="}}}});
  const auto why = failed(api.create(config_maps, here(config_map("a"))));
  BOOST_TEST(why.status == 500u);
  BOOST_TEST(hook.requests().empty());
}

BOOST_FIXTURE_TEST_CASE(webhook_that_cannot_be_reached_fails_the_request, troubled) {
  watch_config_maps(parse(R"({"clientConfig": {"url": "https://127.0.0.1:9/none"}})"));
  const auto why = failed(api.create(config_maps, here(config_map("a"))));
  BOOST_TEST(why.status == 500u);
  BOOST_TEST(why.reason == "InternalError");
  BOOST_TEST(why.message.find("Internal error occurred: failed calling webhook \"" + hook.name() +
                              "\":") != std::string::npos);
  BOOST_TEST(!there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(webhook_that_cannot_be_reached_may_be_ignored, troubled) {
  watch_config_maps(
      parse(R"({"clientConfig": {"url": "https://127.0.0.1:9/none"}, "failurePolicy": "Ignore"})"));
  create(config_maps, config_map("a"));
}

BOOST_FIXTURE_TEST_CASE(webhook_that_is_not_trusted_fails_the_request, troubled) {
  watch_config_maps({{"clientConfig", {{"url", hook.url()}}}});
  const auto why = failed(api.create(config_maps, here(config_map("a"))));
  BOOST_TEST(why.status == 500u);
  BOOST_TEST(hook.requests().empty());
}

BOOST_FIXTURE_TEST_CASE(webhook_that_is_too_slow_fails_the_request, troubled) {
  watch_config_maps({{"timeoutSeconds", 1}});
  hook.hang();
  const auto begun = std::chrono::steady_clock::now();
  const auto why = failed(api.create(config_maps, here(config_map("a"))));
  const auto took = std::chrono::steady_clock::now() - begun;
  BOOST_TEST(why.status == 500u);
  BOOST_TEST((took >= std::chrono::milliseconds(900)));
  BOOST_TEST((took < std::chrono::seconds(8)));
}

BOOST_FIXTURE_TEST_CASE(webhook_that_responds_to_another_request_fails_the_request, troubled) {
  watch_config_maps();
  hook.answer([](const json&) { return json{{"allowed", true}, {"uid", "another"}}; });
  const auto why = failed(api.create(config_maps, here(config_map("a"))));
  BOOST_TEST(why.status == 500u);
  BOOST_TEST(!there(config_maps, "a"));
}

BOOST_AUTO_TEST_SUITE_END()
