#include "rw/k8s/client/client.hpp"

#include "rw/k8s/client/client_pool.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/scripted_server.hpp"
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(client)

namespace {

using namespace rw::k8s;
using namespace rw::k8s::test;
namespace json = boost::json;
namespace http = rw::http;

json::value parsed(std::string_view text) {
  return json::parse({text.data(), text.size()});
}

constexpr std::string_view object = R"({"kind":"ConfigMap","apiVersion":"v1",)"
                                    R"("metadata":{"name":"a","namespace":"team"},)"
                                    R"("data":{"k":"v"}})";

/// Gathers a watch.
struct gathered : watch_sink {
  bool take(std::string_view bytes) override {
    text += bytes;
    return text.size() < enough;
  }
  void end(boost::system::error_code) override { ended = true; }
  std::string text;
  bool ended = false;
  std::size_t enough = 1u << 20;
};

/// A body that is given piece by piece, then ended, or never.
class pieces final : public http::body_source {
 public:
  pieces(std::vector<std::string> what, state last) : what_(std::move(what)), last_(last) {}
  state read(std::string& into, std::size_t) override {
    if (next_ == what_.size()) return last_;
    into += what_[next_++];
    return state::more;
  }
  void on_ready(std::function<void()>) override {}

 private:
  std::vector<std::string> what_;
  state last_;
  std::size_t next_ = 0;
};

script::answer streaming(std::vector<std::string> what, http::body_source::state last) {
  return [=](const seen_request&, http::response& into) {
    into.headers.add("content-type", "application/json");
    into.source = std::make_unique<pieces>(what, last);
  };
}

}  // namespace

BOOST_AUTO_TEST_CASE(verb_is_the_request_that_the_api_describes) {
  for (const auto which : {protocol::h2, protocol::http1}) {
    api_fixture f(which);
    auto& api = f.api();
    const auto sent = [&](auto call) {
      const auto got = f.call(std::move(call));
      BOOST_TEST(got.has_value(), (got ? "" : got.error().message));
      return f.script.last();
    };

    auto request = sent(api.get(config_maps, {"team", "a"}));
    BOOST_TEST(request.line() == "GET /api/v1/namespaces/team/configmaps/a");
    BOOST_TEST(request.header("accept") == "application/json");
    BOOST_TEST(request.header("authorization") == "Bearer secret-token");
    BOOST_TEST(request.header("user-agent") == "runtime-watcher");
    BOOST_TEST(request.body == "");

    request = sent(api.create(config_maps, parsed(object)));
    BOOST_TEST(request.line() ==
               "POST /api/v1/namespaces/team/configmaps?fieldManager=runtime-watcher");
    BOOST_TEST(request.header("content-type") == "application/json");
    BOOST_TEST(request.body == object);

    request = sent(api.update(config_maps, parsed(object),
                              {.field_manager = "me & you", .subresource = "status"}));
    BOOST_TEST(request.line() ==
               "PUT /api/v1/namespaces/team/configmaps/a/status?fieldManager=me%20%26%20you");
    BOOST_TEST(request.body == object);

    const std::pair<patch_type, std::string> kinds[] = {
        {patch_type::merge, "application/merge-patch+json"},
        {patch_type::json, "application/json-patch+json"},
        {patch_type::strategic_merge, "application/strategic-merge-patch+json"}};
    for (const auto& [how, content_type] : kinds) {
      request = sent(api.patch(config_maps, {"team", "a"}, how, parsed(R"({"data":null})"),
                               {.dry_run = true}));
      BOOST_TEST(request.line() ==
                 "PATCH /api/v1/namespaces/team/configmaps/a?fieldManager=runtime-watcher&"
                 "dryRun=All");
      BOOST_TEST(request.header("content-type") == content_type);
      BOOST_TEST(request.body == R"({"data":null})");
    }

    request = sent(api.apply(config_maps, parsed(object), {.field_manager = "f", .force = true}));
    BOOST_TEST(request.line() ==
               "PATCH /api/v1/namespaces/team/configmaps/a?fieldManager=f&force=true");
    BOOST_TEST(request.header("content-type") == "application/apply-patch+yaml");

    request = sent(api.remove(config_maps, {"team", "a"}));
    BOOST_TEST(request.line() == "DELETE /api/v1/namespaces/team/configmaps/a");
    BOOST_TEST(request.body == "");
    BOOST_TEST(request.header("content-type") == "");

    request = sent(api.remove(config_maps, {"team", "a"},
                              {.uid = "u",
                               .resource_version = "7",
                               .propagation = "Foreground",
                               .grace_period_seconds = 0,
                               .dry_run = true}));
    BOOST_TEST(request.body ==
               R"({"preconditions":{"uid":"u","resourceVersion":"7"},)"
               R"("propagationPolicy":"Foreground","gracePeriodSeconds":0,"dryRun":["All"],)"
               R"("kind":"DeleteOptions","apiVersion":"v1"})");

    request = sent(api.remove_all(config_maps, {.ns = "team", .labels = "a in (b,c)"}));
    BOOST_TEST(request.line() ==
               "DELETE /api/v1/namespaces/team/configmaps?labelSelector=a%20in%20%28b%2Cc%29");

    request = sent(api.raw("POST", "/some/path", "text/plain", "hello"));
    BOOST_TEST(request.line() == "POST /some/path");
    BOOST_TEST(request.header("content-type") == "text/plain");
    BOOST_TEST(request.body == "hello");
  }
}

BOOST_AUTO_TEST_CASE(lists_are_read_in_pages) {
  api_fixture f;
  f.script.answers(200, R"({"kind":"ConfigMapList","apiVersion":"v1",)"
                        R"("metadata":{"resourceVersion":"5","continue":"x"},"items":null})");
  const auto page = f.call(
      f.api().list(config_maps, {.ns = "team", .labels = "app=x", .fields = "metadata.name!=y"},
                   {.limit = 500,
                    .continue_token = "a/b=",
                    .resource_version = "0",
                    .resource_version_match = "NotOlderThan"}));
  BOOST_REQUIRE_MESSAGE(page.has_value(), page.error().message);
  BOOST_TEST(page->at("items").as_array().empty());
  BOOST_TEST(f.script.last().line() ==
             "GET /api/v1/namespaces/team/configmaps?labelSelector=app%3Dx&"
             "fieldSelector=metadata.name%21%3Dy&limit=500&continue=a%2Fb%3D&resourceVersion=0&"
             "resourceVersionMatch=NotOlderThan");

  const auto text = f.call(f.api().list_text(deployments, {}));
  BOOST_REQUIRE(text.has_value());
  BOOST_TEST(text->starts_with(R"({"kind":"ConfigMapList")"));
  BOOST_TEST(f.script.last().line() == "GET /apis/apps/v1/deployments");
}

namespace {

/// A page with one ConfigMap of that name, or (empty) none.
script::answer page_of(std::string_view name, std::string_view token, unsigned status = 200) {
  json::object page{{"kind", "ConfigMapList"},
                    {"apiVersion", "v1"},
                    {"metadata", {{"resourceVersion", "5"}, {"continue", token}}},
                    {"items", json::array()}};
  if (!name.empty())
    page["items"].as_array().push_back(json::object{{"metadata", {{"name", name}}}});
  if (status != 200) page = {{"kind", "Status"}, {"code", status}, {"reason", "Expired"}};
  return [status, body = json::serialize(page)](const seen_request&, http::response& into) {
    into.status = status;
    into.headers.add("content-type", "application/json");
    into.body = body;
  };
}

}  // namespace

BOOST_AUTO_TEST_CASE(pages_of_a_list_are_put_together) {
  api_fixture f;
  f.script.answers_in_turn({page_of("a", "1"), page_of("", "2"), page_of("b", "")});
  const auto all = f.call(f.api().list_all(config_maps, {.ns = "team"}));
  BOOST_REQUIRE_MESSAGE(all.has_value(), all.error().message);
  BOOST_TEST(json::serialize(*all) ==
             R"({"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"5"},)"
             R"("items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]})");
  BOOST_TEST(f.script.last().line() ==
             "GET /api/v1/namespaces/team/configmaps?limit=500&continue=2");
}

BOOST_AUTO_TEST_CASE(list_in_pages_begins_again_once_where_its_version_is_forgotten) {
  api_fixture f;
  f.script.answers_in_turn({page_of("a", "1"), page_of("", "", 410), page_of("b", "")});
  const auto all = f.call(f.api().list_all(config_maps, {}));
  BOOST_REQUIRE_MESSAGE(all.has_value(), all.error().message);
  BOOST_TEST(all->at("items").as_array().size() == 1u);
  f.script.answers_in_turn({page_of("a", "1"), page_of("", "", 410), page_of("a", "1"),
                            page_of("", "", 410), page_of("b", "")});
  const auto again = f.call(f.api().list_all(config_maps, {}));
  BOOST_REQUIRE(again.has_error());
  BOOST_TEST(again.error().is(errc::gone));
}

BOOST_AUTO_TEST_CASE(list_in_pages_without_end_is_an_error) {
  api_fixture f;
  f.script.answers_in_turn({page_of("a", "1"), page_of("b", "2"), page_of("a", "1")});
  const auto repeated = f.call(f.api().list_all(config_maps, {}));
  BOOST_REQUIRE(repeated.has_error());
  BOOST_TEST(repeated.error().is(errc::bad_response));
  BOOST_TEST(repeated.error().message.find("repeats") != std::string::npos);
  auto count = std::make_shared<unsigned>(0);
  f.script.answers([count](const seen_request& from, http::response& into) {
    page_of("", std::to_string((*count)++))(from, into);
  });
  const auto empty = f.call(f.api().list_all(config_maps, {}));
  BOOST_REQUIRE(empty.has_error());
  BOOST_TEST(empty.error().message.find("stay empty") != std::string::npos);
  BOOST_TEST(*count == 1000u);
}

BOOST_AUTO_TEST_CASE(part_of_an_object_is_read_of_whatever_kind) {
  api_fixture f;
  f.script.answers(200, R"({"kind":"Scale","spec":{"replicas":3}})");
  const auto scale = f.call(f.api().get_subresource(deployments, {"team", "a"}, "scale"));
  BOOST_REQUIRE_MESSAGE(scale.has_value(), scale.error().message);
  BOOST_TEST(f.script.last().line() == "GET /apis/apps/v1/namespaces/team/deployments/a/scale");
}

BOOST_AUTO_TEST_CASE(field_validation_is_requested_of_writes) {
  api_fixture f;
  const auto done =
      f.call(f.api().create(config_maps, parsed(object), {.field_validation = "Strict"}));
  BOOST_TEST(done.has_value());
  BOOST_TEST(f.script.last().line().find("fieldValidation=Strict") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(metadata_can_be_asked_for_alone) {
  api_fixture f;
  f.script.answers(200, R"({"kind":"PartialObjectMetadata","metadata":{"name":"a"}})");
  const auto one = f.call(f.api().get(config_maps, {"team", "a"}, true));
  BOOST_TEST(one.has_value());
  BOOST_TEST(f.script.last().header("accept") ==
             "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json");
  f.script.answers(200, R"({"kind":"PartialObjectMetadataList","metadata":{},"items":[]})");
  const auto all = f.call(f.api().list(config_maps, {.metadata_only = true}));
  BOOST_TEST(all.has_value());
  BOOST_TEST(f.script.last().header("accept") ==
             "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json");
}

BOOST_AUTO_TEST_CASE(servers_prefix_stands_before_every_path) {
  api_fixture f;
  auto how = f.config();
  how.server += "/clusters/x/";
  auto& api = f.use(how);
  BOOST_TEST(f.call(api.get(config_maps, {"team", "a"})).has_value());
  BOOST_TEST(f.script.last().line() == "GET /clusters/x/api/v1/namespaces/team/configmaps/a");
  BOOST_TEST(f.call(api.raw("GET", "/readyz", "", "")).has_value());
  BOOST_TEST(f.script.last().line() == "GET /clusters/x/readyz");
}

BOOST_AUTO_TEST_CASE(object_without_a_namespace_is_in_that_of_the_context) {
  api_fixture f;
  auto how = f.config();
  how.ns = "mine";
  auto& api = f.use(how);
  BOOST_TEST(f.call(api.get(config_maps, {"", "a"})).has_value());
  BOOST_TEST(f.script.last().line() == "GET /api/v1/namespaces/mine/configmaps/a");
  f.script.answers(200, R"({"kind":"Namespace","metadata":{"name":"a"}})");
  BOOST_TEST(f.call(api.get(namespaces, {"", "a"})).has_value());
  BOOST_TEST(f.script.last().line() == "GET /api/v1/namespaces/a");
}

BOOST_AUTO_TEST_CASE(request_without_a_name_is_not_sent) {
  api_fixture f;
  auto& api = f.api();
  // It would be a request for the whole collection, or for what lies beside it.
  for (const auto* name : {"", ".", ".."}) {
    const auto got = f.call(api.remove(config_maps, {"team", name}));
    BOOST_REQUIRE(got.has_error());
    BOOST_TEST(got.error().is(errc::bad_request));
  }
  const auto got = f.call(api.update(config_maps, parsed(R"({"kind":"ConfigMap"})")));
  BOOST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().message == "cannot update configmaps default/: the object has no name");
  BOOST_TEST(f.script.count() == 0u);

  BOOST_TEST(f.call(api.create(config_maps,
                               parsed(R"({"kind":"ConfigMap","metadata":{"generateName":"a-"}})")))
                 .has_value());
}

BOOST_AUTO_TEST_CASE(client_sends_impersonation_headers) {
  api_fixture f;
  auto how = f.config();
  how.impersonate_user = "jane";
  how.impersonate_uid = "u-1";
  how.impersonate_groups = {"devs", "admins"};
  how.impersonate_extra = {{"scopes/a", "view"}, {"scopes/a", "edit"}};
  BOOST_TEST(f.call(f.use(how).get(config_maps, {"team", "a"})).has_value());
  const auto request = f.script.last();
  BOOST_TEST(request.header("impersonate-user") == "jane");
  BOOST_TEST(request.header("impersonate-uid") == "u-1");
  BOOST_TEST(request.header("impersonate-group") == "devs, admins");
  BOOST_TEST(request.header("impersonate-extra-scopes%2fa") == "view, edit");
}

BOOST_AUTO_TEST_CASE(watches_give_bytes_as_they_come) {
  for (const auto which : {protocol::h2, protocol::http1}) {
    api_fixture f(which);
    f.script.answers(streaming({"{\"type\":\"ADDED\"", ",\"object\":{}}\n", "{}\n"},
                               http::body_source::state::end));
    gathered into;
    const auto done = f.call(watch_to_end(f.api(), config_maps, {.ns = "team", .labels = "a=b"},
                                          {.resource_version = "42"}, into));
    BOOST_TEST(done.has_value(), (done ? "" : done.error().message));
    BOOST_TEST(into.text == "{\"type\":\"ADDED\",\"object\":{}}\n{}\n");
    BOOST_TEST(f.script.last().line() ==
               "GET /api/v1/namespaces/team/configmaps?watch=true&allowWatchBookmarks=true&"
               "labelSelector=a%3Db&resourceVersion=42&timeoutSeconds=300");
    const auto streamed = f.call(
        watch_to_end(f.api(), config_maps, {},
                     {.timeout = std::chrono::seconds(60), .send_initial_events = true}, into));
    BOOST_TEST(streamed.has_value());
    BOOST_TEST(f.script.last().line() ==
               "GET /api/v1/configmaps?watch=true&allowWatchBookmarks=true&timeoutSeconds=60&"
               "sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
  }
}

BOOST_AUTO_TEST_CASE(opened_watch_goes_on_where_many_share_a_connection) {
  api_fixture f;
  f.script.answers(streaming({"one\n"}, http::body_source::state::pending));
  gathered into;
  auto opened = f.call(f.api().open_watch(config_maps, {}, {.resource_version = "42"}, into));
  BOOST_REQUIRE(opened.has_value());
  BOOST_TEST((*opened != nullptr));
  BOOST_TEST(f.script.last().line() ==
             "GET /api/v1/configmaps?watch=true&allowWatchBookmarks=true&"
             "resourceVersion=42&timeoutSeconds=300");
  BOOST_TEST(http::test::eventually([&] {
    bool has = false;
    f.here.on_thread([&] { has = into.text == "one\n"; });
    return has;
  }));
  f.call(f.api().close());
  BOOST_TEST(into.ended);
}

BOOST_AUTO_TEST_CASE(opened_watch_has_ended_where_each_has_a_connection) {
  api_fixture f(protocol::http1);
  f.script.answers(streaming({"one\n"}, http::body_source::state::end));
  gathered into;
  const auto opened = f.call(f.api().open_watch(config_maps, {}, {}, into));
  BOOST_REQUIRE(opened.has_value());
  BOOST_TEST((*opened == nullptr));
  BOOST_TEST(into.text == "one\n");
}

BOOST_AUTO_TEST_CASE(opened_watch_refused_is_a_failure) {
  for (const auto which : {protocol::h2, protocol::http1}) {
    api_fixture f(which);
    f.script.answers(410, status_text(410, "Expired", "too old resource version: 1 (5)"));
    gathered into;
    const auto opened =
        f.call(f.api().open_watch(config_maps, {}, {.resource_version = "1"}, into));
    BOOST_REQUIRE(opened.has_error());
    BOOST_TEST(opened.error().is(errc::gone));
  }
}

BOOST_AUTO_TEST_CASE(watch_ends_well_when_its_sink_has_enough) {
  api_fixture f;
  f.script.answers(streaming({"0123456789"}, http::body_source::state::pending));
  gathered into;
  into.enough = 5;
  const auto done = f.call(watch_to_end(f.api(), config_maps, {}, {}, into));
  BOOST_TEST(done.has_value());
}

BOOST_AUTO_TEST_CASE(watch_that_breaks_is_a_failure_and_is_not_fed_twice) {
  for (const auto which : {protocol::h2, protocol::http1}) {
    api_fixture f(which);
    f.script.answers(streaming({"one\n"}, http::body_source::state::broken));
    gathered into;
    const auto done = f.call(watch_to_end(f.api(), config_maps, {}, {}, into));
    BOOST_REQUIRE(done.has_error());
    BOOST_TEST(done.error().is(errc::unreachable));
    BOOST_TEST(into.text == "one\n");
    BOOST_TEST(f.script.count() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(silent_watch_is_broken) {
  api_fixture f;
  auto options = api_fixture::quick();
  options.request = std::chrono::milliseconds(100);
  f.script.answers(streaming({"one\n"}, http::body_source::state::pending));
  gathered into;
  const auto done = f.call(watch_to_end(f.use(f.config(), options), config_maps, {},
                                        {.silence = std::chrono::milliseconds(50)}, into));
  BOOST_REQUIRE(done.has_error());
  BOOST_TEST(done.error().is(errc::timed_out));
}

BOOST_AUTO_TEST_CASE(client_without_a_watchdog_ends_requests_at_their_limit) {
  api_fixture f;
  f.brings_watchdog = false;
  auto options = api_fixture::quick();
  options.request = std::chrono::milliseconds(100);
  options.retries = 0;
  f.script.answers(streaming({"{"}, http::body_source::state::pending));
  const auto got = f.call(f.use(f.config(), options).get(config_maps, {"team", "a"}));
  BOOST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().is(errc::timed_out));
}

BOOST_AUTO_TEST_CASE(watch_refused_is_a_failure) {
  api_fixture f;
  f.script.answers(410, status_text(410, "Expired", "too old resource version: 1 (5)"));
  gathered into;
  const auto done = f.call(watch_to_end(f.api(), config_maps, {}, {.resource_version = "1"}, into));
  BOOST_REQUIRE(done.has_error());
  BOOST_TEST(done.error().is(errc::gone));
  BOOST_TEST(done.error().message ==
             "cannot watch configmaps: too old resource version: 1 (5) (410 Gone)");
  BOOST_TEST(into.text == "");
}

/// The server may be a tenant's, and the texts reach the terminals of operators.
BOOST_AUTO_TEST_CASE(text_of_a_server_controls_no_terminal) {
  api_fixture f;
  f.script.answers(403,
                   R"({"kind":"Status","reason":"For\u001b[2Jbidden","message":"no\u001b]0;x\u0007)"
                   R"(\nKyma r0: released\u009b1A","details":{"causes":[{"reason":"R\u0007",)"
                   R"("message":"m\r","field":"f\u0000"}]}})");
  const auto got = f.call(f.api().get(config_maps, {"team", "a"}));
  BOOST_REQUIRE(got.has_error());
  const auto& error = got.error();
  BOOST_TEST(error.reason == "For?[2Jbidden");
  BOOST_TEST(error.message ==
             "cannot get configmaps team/a: no?]0;x? Kyma r0: released?1A (403 Forbidden)");
  BOOST_REQUIRE(error.causes.size() == 1u);
  BOOST_TEST(error.causes[0].reason == "R?");
  BOOST_TEST(error.causes[0].message == "m ");
  BOOST_TEST(error.causes[0].field == "f?");
}

BOOST_AUTO_TEST_CASE(more_watches_than_connections_leave_room_for_requests_without_http2) {
  api_fixture f(protocol::http1);
  auto options = api_fixture::quick();
  options.connections = 2;
  auto& api = f.use(f.config(), options);
  std::vector<gathered> sinks(5);
  std::vector<std::future<result<void>>> watches;
  f.script.answers([](const seen_request& from, http::response& into) {
    if (from.target.find("watch=true") == std::string::npos) {
      return reply(into, 200, std::string(object));
    }
    into.source =
        std::make_unique<pieces>(std::vector<std::string>{"x"}, http::body_source::state::pending);
  });
  for (auto& sink : sinks) {
    watches.push_back(boost::asio::co_spawn(
        f.here.context, watch_to_end(api, config_maps, {}, {}, sink), boost::asio::use_future));
  }
  BOOST_TEST(http::test::eventually([&] { return f.script.count() == sinks.size(); }));
  BOOST_TEST(f.call(api.get(config_maps, {"team", "a"})).has_value());
  f.close();
  for (auto& watch : watches) {
    const auto ended = watch.get();
    BOOST_REQUIRE(ended.has_error());
    BOOST_TEST(ended.error().is(errc::shut_down));
  }
}

BOOST_AUTO_TEST_CASE(many_watches_leave_room_for_requests_with_http2) {
  api_fixture f;
  auto& api = f.api();
  std::vector<gathered> sinks(300);
  std::vector<std::future<result<void>>> watches;
  f.script.answers([](const seen_request& from, http::response& into) {
    if (from.target.find("watch=true") == std::string::npos) {
      return reply(into, 200, std::string(object));
    }
    into.source =
        std::make_unique<pieces>(std::vector<std::string>{"x"}, http::body_source::state::pending);
  });
  for (auto& sink : sinks) {
    watches.push_back(boost::asio::co_spawn(
        f.here.context, watch_to_end(api, config_maps, {}, {}, sink), boost::asio::use_future));
  }
  BOOST_TEST(http::test::eventually([&] { return f.script.count() == sinks.size(); }));
  BOOST_TEST(f.call(api.get(config_maps, {"team", "a"})).has_value());
  BOOST_TEST(f.metric("rw_http_client_open_connections{client=\"test\"}") == 2);
  f.close();
  for (auto& watch : watches) BOOST_TEST(watch.get().has_error());
}

BOOST_AUTO_TEST_CASE(discovery_finds_the_resource_of_a_kind) {
  api_fixture f;
  f.script.answers([](const seen_request& from, http::response& into) {
    if (from.target == "/apis/apps/v1") {
      return reply(into, 200, R"({"kind":"APIResourceList","groupVersion":"apps/v1","resources":[
          {"name":"deployments","kind":"Deployment","namespaced":true,"verbs":["get","list"]},
          {"name":"deployments/scale","group":"autoscaling","kind":"Scale","namespaced":true},
          {"name":"deployments/status","kind":"Deployment","namespaced":true},
          {"name":"controllerrevisions","kind":"ControllerRevision","namespaced":true}]})");
    }
    if (from.target == "/apis") {
      return reply(into, 200, R"({"kind":"APIGroupList","groups":[
          {"name":"none.at.all","versions":[]},{"name":"apps",
          "versions":[{"version":"v1beta1"},{"version":"v1"}],
          "preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]})");
    }
    if (from.target == "/api")
      return reply(into, 200, R"({"kind":"APIVersions","versions":["v1"]})");
    if (from.target == "/version") return reply(into, 200, R"({"major":"1","minor":"32+"})");
    reply(into, 404, "404 page not found\n");
  });
  auto& api = f.api();
  const auto found = f.call(api.find({"apps", "v1", "Deployment"}));
  BOOST_REQUIRE_MESSAGE(found.has_value(), found.error().message);
  BOOST_TEST((*found == deployments));
  BOOST_TEST(f.call(api.find({"apps", "v1", "Deployment"})).has_value());
  BOOST_TEST(f.script.count() == 1u);

  // A miss is looked up again: the kind may just have been made.
  for (int i = 0; i < 2; ++i) {
    const auto missing = f.call(api.find({"apps", "v1", "Nothing"}));
    BOOST_REQUIRE(missing.has_error());
    BOOST_TEST(missing.error().is(errc::not_found));
  }
  BOOST_TEST(f.script.count() == 3u);

  const auto resources = f.call(api.resources("apps/v1"));
  BOOST_REQUIRE(resources.has_value());
  BOOST_TEST(resources->size() == 2u);
  BOOST_TEST(resources->at(0).has_status);
  BOOST_TEST(!resources->at(1).has_status);
  BOOST_TEST(resources->front().verbs.size() == 2u);
  const auto unserved = f.call(api.resources("none/v1"));
  BOOST_REQUIRE(unserved.has_error());
  BOOST_TEST(unserved.error().is(errc::not_found));

  using names = std::vector<std::string>;
  BOOST_TEST((f.call(api.versions("apps")).value() == names{"v1", "v1beta1"}));
  BOOST_TEST((f.call(api.versions("")).value() == names{"v1"}));
  BOOST_TEST((f.call(api.versions("none")).value() == names{}));
  BOOST_TEST((f.call(api.server_version()).value() == std::pair(1u, 32u)));
}

BOOST_AUTO_TEST_CASE(client_without_a_name_of_its_own_is_refused) {
  api_fixture f;
  for (const auto name : {&client_options::user_agent, &client_options::field_manager}) {
    auto options = api_fixture::quick();
    options.*name = "";
    BOOST_CHECK_THROW(f.use(f.config(), options), std::invalid_argument);
    BOOST_CHECK_THROW(client_pool(f.here.executor(), {.client = options},
                                  {f.here.clock, f.here.watchdog, f.here.log, f.here.metrics}),
                      std::invalid_argument);
  }
}

BOOST_AUTO_TEST_SUITE_END()
