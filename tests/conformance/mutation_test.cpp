#include "webhook.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(mutation)

using namespace rw;
using namespace rw::conformance;

namespace {

/// A sandbox with a mutating webhook for all that happens to ConfigMaps.
struct mutated : sandbox {
  webhook hook{*this, webhook_kind::mutating};

  void call(json members = boost::json::object()) {
    hook.call_for(boost::json::array{rule(config_maps)}, std::move(members));
  }
};

json add(std::string_view path, json value) {
  return {{"op", "add"}, {"path", path}, {"value", std::move(value)}};
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(patch_of_a_webhook_is_stored, mutated) {
  call();
  hook.answer(
      patch_by(boost::json::array{add("/data/added", "1"), add("/metadata/labels", {{"l", "x"}})}));
  const auto made = create(config_maps, config_map("a", {{"k", "v"}}));
  BOOST_TEST(text(made, "/data/added") == "1");
  const auto stored = get(config_maps, "a");
  BOOST_TEST(stored.at("data") == parse(R"({"k": "v", "added": "1"})"));
  BOOST_TEST(text(stored, "/metadata/labels/l") == "x");
  // Nobody owns what a webhook adds.
  BOOST_TEST(serialize(stored.at_pointer("/metadata/managedFields")).find("f:added") ==
             std::string::npos);
  hook.answer(patch_by(boost::json::array{add("/data/added", "2")}));
  update(config_maps, config_map("a", {{"k", "w"}}));
  BOOST_TEST(get(config_maps, "a").at("data") == parse(R"({"k": "w", "added": "2"})"));
}

BOOST_FIXTURE_TEST_CASE(validating_webhook_sees_the_patched_object, mutated) {
  call();
  webhook validating(*this);
  validating.call_for(boost::json::array{rule(config_maps, {"CREATE"})});
  hook.answer(patch_by(boost::json::array{add("/data/added", "1")}));
  create(config_maps, config_map("a", {{"k", "v"}}));
  BOOST_TEST(text(validating.request(), "/object/data/added") == "1");
}

BOOST_FIXTURE_TEST_CASE(patched_object_is_validated, mutated) {
  call();
  hook.answer(patch_by(boost::json::array{add("/data/not~1valid", "1")}));
  refuse(api.create(config_maps, here(config_map("a", {{"k", "v"}}))),
         {422, "Invalid", "data[not/valid]"});
}

BOOST_FIXTURE_TEST_CASE(mutating_webhook_can_deny, mutated) {
  call();
  hook.answer(deny);
  refuse(api.create(config_maps, here(config_map("a"))),
         {400, "", "admission webhook \"" + hook.name() + "\" denied the request: not like this"});
}

BOOST_FIXTURE_TEST_CASE(patch_that_does_not_apply_is_an_internal_error, mutated) {
  call();
  hook.answer(patch_by(boost::json::array{{{"op", "remove"}, {"path", "/data/none"}}}));
  refuse(api.create(config_maps, here(config_map("a", {{"k", "v"}}))), {500, "InternalError", ""});
}

BOOST_FIXTURE_TEST_CASE(webhook_is_called_again_after_a_later_change_if_it_asks_for_that, mutated) {
  call({{"reinvocationPolicy", "IfNeeded"}});
  hook.answer([](const json&) -> json { return {{"allowed", true}}; });
  webhook later(*this, webhook_kind::mutating);
  later.call_for(boost::json::array{rule(config_maps)});
  later.answer(patch_by(boost::json::array{add("/data/added", "1")}));
  hook.requests();
  create(config_maps, config_map("a", {{"k", "v"}}));
  const auto calls = hook.requests();
  BOOST_REQUIRE(calls.size() >= 1U);
  BOOST_TEST(later.requests().size() == 1U);
  // Configurations are called by their names, which are unique and not in order.
  if (hook.name() < later.name()) {
    BOOST_REQUIRE_EQUAL(calls.size(), 2U);
    BOOST_TEST(text(calls.back(), "/object/data/added") == "1");
  } else {
    BOOST_REQUIRE_EQUAL(calls.size(), 1U);
    BOOST_TEST(text(calls.back(), "/object/data/added") == "1");
  }
}

BOOST_AUTO_TEST_SUITE_END()
