// What servers do to informers over real connections, in both protocols.

#include "rw/k8s/client/client.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/informing.hpp"
#include "tests/unit/k8s/samples.hpp"
#include "tests/unit/k8s/scripted_server.hpp"
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(informer_http)

namespace http = rw::http;
using namespace rw::k8s;
using namespace rw::k8s::test;

namespace {

/// A body in pieces that then ends, breaks off or stays open.
class pieces final : public http::body_source {
 public:
  pieces(std::string what, state last) : what_(std::move(what)), last_(last) {}

  state read(std::string& into, std::size_t room) override {
    if (at_ == what_.size()) return last_;
    const auto bytes = std::min(room, what_.size() - at_);
    into.append(what_, at_, bytes);
    at_ += bytes;
    return state::more;
  }
  void on_ready(std::function<void()>) override {}

 private:
  const std::string what_;
  std::size_t at_ = 0;
  const state last_;
};

using state = http::body_source::state;

bool is_watch(const seen_request& from) {
  return from.target.find("watch=true") != std::string::npos;
}

std::string version_asked(const seen_request& from) {
  const std::string name = "resourceVersion=";
  const auto at = from.target.find(name);
  if (at == std::string::npos) return {};
  const auto begin = at + name.size();
  return from.target.substr(begin, from.target.find('&', begin) - begin);
}

void stream(http::response& into, std::string what, state last) {
  into.headers.add("content-type", "application/json");
  into.source = std::make_unique<pieces>(std::move(what), last);
}

}  // namespace

BOOST_AUTO_TEST_CASE(server_that_closes_after_each_event_loses_nothing) {
  for (const auto which : {protocol::h2, protocol::http1}) {
    for (const auto last : {state::end, state::broken}) {
      api_fixture f(which);
      f.script.answers([last](const seen_request& from, http::response& into) {
        if (!is_watch(from)) return reply(into, 200, list("10", {configmap("a", "1")}));
        const auto next = std::to_string(std::stoi(version_asked(from)) + 1);
        if (next == "21") return stream(into, "", state::pending);
        stream(into, event("MODIFIED", configmap("a", next)), last);
      });
      informing seen(f.here, f.api());
      BOOST_TEST(seen.eventually_has("a", "20"));
      BOOST_TEST(f.metric(R"(rw_informer_lists_total{resource="configmaps"})") == 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(watch_line_of_twenty_mebibytes_is_listed_instead) {
  for (const auto which : {protocol::h2, protocol::http1}) {
    api_fixture f(which);
    f.script.answers([](const seen_request& from, http::response& into) {
      if (is_watch(from)) {
        const bool first = version_asked(from) == "10";
        const std::string large(20u << 20, 'x');
        return stream(into, first ? event("MODIFIED", configmap("a", "11", {}, large)) : "",
                      state::pending);
      }
      static int lists = 0;
      const bool first = lists++ % 2 == 0;
      reply(into, 200,
            first ? list("10", {configmap("a", "1")}) : list("30", {configmap("a", "11")}));
    });
    informing seen(f.here, f.api());
    BOOST_TEST(seen.eventually_has("a", "11"));
    BOOST_TEST(seen.eventually_said("is larger than 8388608 bytes"));
    BOOST_TEST(seen.watches_that("bad_event") == 1);
  }
}

BOOST_AUTO_TEST_CASE(answers_that_are_not_json_are_named_and_asked_for_again) {
  api_fixture f;
  f.script.answers_in_turn(
      {[](const seen_request&, http::response& into) { reply(into, 200, "<html>login</html>"); },
       [](const seen_request&, http::response& into) {
         reply(into, 200, list("10", {configmap("a", "1")}));
       },
       [](const seen_request&, http::response& into) {
         stream(into, "<html>login</html>\n", state::pending);
       },
       [](const seen_request&, http::response& into) {
         reply(into, 200, list("30", {configmap("a", "20")}));
       },
       [](const seen_request&, http::response& into) { stream(into, "", state::pending); }});
  informing seen(f.here, f.api());
  BOOST_TEST(seen.eventually_has("a", "20"));
  BOOST_TEST(seen.eventually_said("cannot watch configmaps: an event of the watch is not JSON"));
}

BOOST_AUTO_TEST_SUITE_END()
