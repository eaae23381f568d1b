#include "rw/reactors/cli/runtime_diff.hpp"

#include "rw/k8s/objects/base64.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(runtime_diff)

using namespace rw;
using namespace rw::cli;
namespace json = boost::json;

namespace {

k8s::tried_write write_of(const char* kind, json::value live, json::value next) {
  return {.type = {{"", "v1", kind}, "things"},
          .key = {"kyma-system", "a"},
          .live = std::move(live),
          .next = std::move(next)};
}

json::value diff_of(std::vector<k8s::tried_write> writes, std::vector<std::string> waits = {},
                    std::string error = {}, std::size_t most = 1000) {
  return json_of({{.component = "watcher",
                   .writes = std::move(writes),
                   .waits = std::move(waits),
                   .error = std::move(error)}},
                 most);
}

json::value config(std::string_view value) {
  return {{"kind", "ConfigMap"}, {"data", {{"k", value}}}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(values_of_a_secret_are_digests) {
  const auto secret = [](std::string_view value, const char* applied) {
    return json::value{
        {"kind", "Secret"},
        {"metadata",
         {{"annotations", {{"kubectl.kubernetes.io/last-applied-configuration", applied}}}}},
        {"data", {{"password", k8s::base64_encode(value)}}},
        {"stringData", {{"plain", "open sesame"}}}};
  };
  const auto diff = diff_of({write_of("Secret", secret("secret", "old"), secret("hidden", "new"))});
  const auto text = json::serialize(diff);
  for (const auto* each : {"c2VjcmV0", "secret\"", "aGlkZGVu", "hidden", "sesame", "old", "new"}) {
    BOOST_TEST(text.find(each) == std::string::npos, each);
  }
  // By sha256sum.
  const auto shown = diff_text(diff);
  BOOST_TEST(shown.find("-  password: \"sha256:2bb80d537b1d (6 bytes)\"\n") != std::string::npos,
             shown);
  // A value that is no text is hidden as well.
  json::value odd{{"data", {{"a", {{"b", "secret"}}}, {"c", "not base64!"}}}};
  hide_values(odd);
  BOOST_TEST(json::serialize(odd).find("secret") == std::string::npos);
  BOOST_TEST(json::serialize(odd).find("not base64") == std::string::npos);
  odd = {{"metadata",
          {{"annotations",
            {{"kapp.k14s.io/original", "secret"}, {"operator.kyma-project.io/a", "b"}}}}}};
  hide_values(odd);
  BOOST_TEST(json::serialize(odd).find("secret") == std::string::npos);
  BOOST_TEST(odd.at("metadata").at("annotations").at("operator.kyma-project.io/a") == "b");
  odd = {{"data", "secret"}, {"stringData", nullptr}};
  hide_values(odd);
  BOOST_TEST(json::serialize(odd).find("secret") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(write_is_a_unified_diff_that_names_the_object) {
  BOOST_TEST(diff_text(diff_of({write_of("ConfigMap", config("x"), config("y"))})) ==
             "--- live ConfigMap kyma-system/a\n"
             "+++ next ConfigMap kyma-system/a\n"
             "@@ -1,3 +1,3 @@\n"
             " kind: ConfigMap\n"
             " data:\n"
             "-  k: x\n"
             "+  k: \"y\"\n"
             "# watcher: 1 object differs\n");
  const auto created = diff_text(diff_of({write_of("ConfigMap", nullptr, config("x"))}));
  BOOST_TEST(created.starts_with("--- /dev/null\n+++ next ConfigMap kyma-system/a\n@@ -0,0 +1,3 "));
  const auto deleted = diff_of({write_of("ConfigMap", config("x"), nullptr)});
  BOOST_TEST(diff_text(deleted).starts_with("--- live ConfigMap kyma-system/a\n+++ /dev/null\n"));
  BOOST_TEST(json::serialize(deleted).find(R"("action":"delete")") != std::string::npos);
  BOOST_TEST(diff_text(diff_of({write_of("ConfigMap", config("x"), config("x"))})) ==
             "# ConfigMap kyma-system/a: only the owners of its fields (managedFields) change\n"
             "# watcher: 1 object differs\n");
}

BOOST_AUTO_TEST_CASE(write_to_kcp_is_marked) {
  const auto diff = json_of({{.component = "watcher",
                              .writes = {write_of("ConfigMap", nullptr, config("x"))},
                              .kcp_writes = {write_of("ConfigMap", config("x"), nullptr)}}},
                            1000);
  const auto text = diff_text(diff);
  BOOST_TEST(text.find("+++ next ConfigMap kyma-system/a\n") != std::string::npos, text);
  BOOST_TEST(text.find("--- live ConfigMap kyma-system/a (KCP)\n") != std::string::npos, text);
  BOOST_TEST(text.ends_with("# watcher: 2 objects differ, 1 in KCP\n"), text);
  BOOST_TEST(json::serialize(diff).find(R"("cluster":"KCP")") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(text_has_neither_null_nor_long_base64) {
  const auto webhook = [](json::value rules, char bundle) {
    return json::value{{"kind", "Webhook"},
                       {"rules", std::move(rules)},
                       {"caBundle", k8s::base64_encode(std::string(600, bundle))}};
  };
  const auto differing = write_of("Webhook", webhook(nullptr, 'a'), webhook(json::array(), 'b'));
  const auto text = diff_text(diff_of({differing}, {}, {}, 3000));
  BOOST_TEST(text.find("rules") == std::string::npos, text);
  BOOST_TEST(text.find("null") == std::string::npos, text);
  BOOST_TEST(text.find("-caBundle: \"sha256:") != std::string::npos, text);
  BOOST_TEST(text.find("+caBundle: \"sha256:") != std::string::npos, text);
  BOOST_TEST(text.find("(600 bytes)\"\n") != std::string::npos, text);
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    BOOST_TEST(text.find('\n', at) - at < 100U);
  }
}

BOOST_AUTO_TEST_CASE(text_of_a_runtime_controls_no_terminal) {
  const auto text = diff_text(
      diff_of({write_of("ConfigMap", nullptr, config("\x1b[2J \xc2\x9b"))}, {"\x1b[31m\n"}));
  BOOST_TEST(text.find('\x1b') == std::string::npos);
  BOOST_TEST(text.find('\xc2') == std::string::npos);
  BOOST_TEST(text.find("# watcher: ?[31m") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(text_of_a_runtime_is_a_line_of_its_own) {
  BOOST_TEST(diff_text(diff_of({}, {}, "denied\n# watcher: nothing differs")) ==
             "# watcher: error: denied # watcher: nothing differs\n");
}

BOOST_AUTO_TEST_CASE(exit_code_tells_differences_from_failures) {
  BOOST_TEST(exit_code_of(diff_of({}, {"it waits"})) == 0);
  BOOST_TEST(exit_code_of(diff_of({write_of("ConfigMap", nullptr, config("x"))})) == 3);
  BOOST_TEST(exit_code_of(diff_of({write_of("ConfigMap", nullptr, config("x"))}, {}, "lost")) == 1);
  BOOST_TEST(diff_text(diff_of({}, {"it waits"})) ==
             "# watcher: it waits\n# watcher: nothing differs\n");
  BOOST_TEST(diff_text(diff_of({}, {}, "it is lost")) == "# watcher: error: it is lost\n");
}

BOOST_AUTO_TEST_CASE(states_beyond_the_limit_are_left_out) {
  const auto large = config(std::string(300, 'x'));
  const auto diff = diff_of({write_of("ConfigMap", nullptr, large), write_of("Other", large, large),
                             write_of("Third", nullptr, config("x"))});
  const auto text = diff_text(diff);
  BOOST_TEST(text.find("+++ next ConfigMap") != std::string::npos);
  BOOST_TEST(
      text.find("# Other kyma-system/a: it differs; its content is left out") != std::string::npos,
      text);
  BOOST_TEST(text.find("+++ next Third") != std::string::npos);
  BOOST_TEST(json::serialize(diff).size() < 1000u);
}

BOOST_AUTO_TEST_SUITE_END()
