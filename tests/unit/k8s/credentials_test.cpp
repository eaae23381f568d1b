#include "rw/k8s/client/client.hpp"
#include "rw/k8s/config/exec_plugin.hpp"
#include "rw/k8s/objects/base64.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/scripted_server.hpp"
#include "tests/unit/tls/scratch.hpp"
#include <filesystem>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(credentials)

// As whom requests go out: tokens, certificates and plugins, and how they follow their files.

namespace {

using namespace rw::k8s;
using namespace rw::k8s::test;
using rw::tls::test::scratch;
using rw::tls::test::the_pki;
namespace asio = boost::asio;
namespace k8s = rw::k8s;
namespace http = rw::http;

constexpr std::string_view config_map = R"({"kind":"ConfigMap","metadata":{"name":"a"}})";

asio::awaitable<result<boost::json::value>> read(k8s::client& api) {
  return api.get(config_maps, {"team", "a"});
}

/// Answers 401 to all but one Authorization field.
script::answer only(std::string authorization) {
  return [=](const seen_request& from, http::response& into) {
    if (from.header("authorization") == authorization) {
      return reply(into, 200, std::string(config_map));
    }
    reply(into, 401, status_text(401, "Unauthorized", "Unauthorized"));
  };
}

/// A server, and a plugin that is a shell script beside it.
struct plugin_fixture : api_fixture {
  using api_fixture::api_fixture;

  k8s::config with_plugin(const std::string& body) {
    dir.write("plugin", "#!/bin/sh\necho run >> '" + dir.in("runs") + "'\n" + body);
    std::filesystem::permissions(dir.in("plugin"), std::filesystem::perms::owner_all);
    auto how = config();
    how.token.clear();
    how.exec = exec_plugin{.api_version = "client.authentication.k8s.io/v1",
                           .command = dir.in("plugin"),
                           .install_hint = "get it at example.com"};
    return how;
  }

  static std::string token(const std::string& value, const std::string& more = {}) {
    return "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":"
           "\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"" +
           value + "\"" + more + "}}'\n";
  }

  std::size_t runs() const {
    const auto text = rw::tls::test::good(rw::tls::read_file(dir.in("runs")));
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  std::string failure_of(const std::string& body) {
    const auto got = call(read(use(with_plugin(body))));
    if (got) return "no failure";
    BOOST_TEST(got.error().is(errc::not_configured));
    BOOST_TEST(script.count() == 0u);
    return got.error().message;
  }

  scratch dir;
};

}  // namespace

BOOST_AUTO_TEST_CASE(token_file_is_read_again_when_it_changes) {
  api_fixture f;
  const scratch dir;
  dir.write("v1/token", "one\n");
  dir.write("v2/token", "two\n");
  // As kubelet does it: what the name leads to is swapped as a whole.
  std::filesystem::create_directory_symlink("v1", dir.path() / "current");
  auto how = f.config();
  how.token_file = dir.in("current/token");
  auto& api = f.use(how);
  BOOST_TEST(f.call(read(api)).has_value());
  BOOST_TEST(f.script.last().header("authorization") == "Bearer one");

  std::filesystem::create_directory_symlink("v2", dir.path() / "next");
  std::filesystem::rename(dir.path() / "next", dir.path() / "current");
  const auto changed = [&] {
    BOOST_TEST(f.call(read(api)).has_value());
    return f.script.last().header("authorization") == "Bearer two";
  };
  BOOST_TEST(http::test::eventually(changed));

  // One that is gone, or spoilt, does not take the old one away.
  std::filesystem::remove(dir.path() / "v2/token");
  for (int i = 0; i < 3; ++i) BOOST_TEST(changed());
}

BOOST_AUTO_TEST_CASE(without_its_token_file_nothing_is_sent_until_it_is_there) {
  api_fixture f;
  const scratch dir;
  auto how = f.config();
  how.token.clear();
  how.token_file = dir.in("token");
  auto& api = f.use(how);
  const auto got = f.call(read(api));
  BOOST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().is(errc::not_configured));
  BOOST_TEST(got.error().message ==
             "cannot get configmaps team/a: " + dir.in("token") + ": No such file or directory");
  BOOST_TEST(f.script.count() == 0u);
  dir.write("token", "bad\ntoken");
  dir.write("token", "good");
  BOOST_TEST(http::test::eventually([&] { return f.call(read(api)).has_value(); }));
}

BOOST_AUTO_TEST_CASE(after_a_401_the_token_is_read_again_and_the_request_sent_again_once) {
  api_fixture f;
  const scratch dir;
  dir.write("token", "old");
  auto how = f.config();
  how.token_file = dir.in("token");
  auto& api = f.use(how);
  f.script.answers([&](const seen_request& from, http::response& into) {
    // The server knows of the new token before the client does.
    dir.write("token", "new");
    only("Bearer new")(from, into);
  });
  const auto got = f.call(api.create(config_maps, boost::json::parse(std::string(config_map))));
  BOOST_TEST(got.has_value(), (got ? "" : got.error().message));
  BOOST_TEST(f.script.count() == 2u);

  f.script.answers(only("Bearer newer"));
  const auto refused = f.call(read(api));
  BOOST_REQUIRE(refused.has_error());
  BOOST_TEST(refused.error().is(errc::unauthorized));
  // Nothing had changed, so there was nothing to try again with.
  BOOST_TEST(f.script.count() == 3u);
}

BOOST_AUTO_TEST_CASE(user_name_is_sent_as_basic_authentication) {
  api_fixture f;
  auto how = f.config();
  how.token.clear();
  how.username = "me";
  how.password = "secret";
  BOOST_TEST(f.call(read(f.use(how))).has_value());
  BOOST_TEST(f.script.last().header("authorization") == "Basic " + base64_encode("me:secret"));
}

BOOST_AUTO_TEST_CASE(client_certificate_is_shown_and_swapped_with_its_files) {
  const auto& pki = the_pki();
  api_fixture f(protocol::h2, true);
  const scratch dir;
  dir.write("tls.crt", pki.client.certificate);
  dir.write("tls.key", pki.client.key);
  auto how = f.config();
  how.client_certificate_file = dir.in("tls.crt");
  how.client_key_file = dir.in("tls.key");
  auto& api = f.use(how);
  BOOST_TEST(f.call(read(api)).has_value());
  BOOST_TEST(f.script.last().client == "runtime-1");

  const auto other =
      rw::tls::test::good(pki.ca.issue({.common_name = "runtime-2", .client_auth = true}));
  dir.write("tls.crt", other.certificate);
  // Half of a change is not used.
  for (int i = 0; i < 3; ++i) BOOST_TEST(f.call(read(api)).has_value());
  dir.write("tls.key", other.key);
  BOOST_TEST(http::test::eventually([&] {
    BOOST_TEST(f.call(read(api)).has_value());
    return f.script.last().client == "runtime-2";
  }));
}

BOOST_AUTO_TEST_CASE(unusable_credentials_are_rejected_at_once_and_named) {
  api_fixture f;
  const auto message = [&](auto change) {
    auto how = f.config();
    change(how);
    try {
      f.use(how);
    } catch (const boost::system::system_error& e) {
      return std::string(e.what());
    }
    return std::string("no failure");
  };
  const auto starts = [](const std::string& text, const std::string& with) {
    BOOST_TEST(text.starts_with("context 'test': " + with), text);
  };
  starts(message([](config& c) { c.server = "api"; }), "server \"api\" is no URL");
  starts(message([](config& c) { c.ca = "rubbish"; }), "CA bundle: holds no PEM certificate");
  starts(message([](config& c) { c.token = "a\r\nb"; }), "the token has characters");
  starts(message([](config& c) { c.impersonate_groups = {"a\n"}; }), "as, as-uid, as-groups");
  starts(message([](config& c) { c.proxy_url = "socks5://a"; }), "proxy-url has the scheme");
  starts(message([](config& c) { c.client_key_file = "/none"; }), "/none: No such file");
}

BOOST_AUTO_TEST_CASE(plugin_is_run_once_for_all_and_its_token_kept) {
  plugin_fixture f;
  auto& api = f.use(f.with_plugin(f.token("from-plugin")));
  std::vector<std::future<result<boost::json::value>>> calls;
  for (int i = 0; i < 5; ++i) {
    calls.push_back(asio::co_spawn(f.here.context, read(api), asio::use_future));
  }
  for (auto& one : calls) BOOST_TEST(one.get().has_value());
  BOOST_TEST(f.call(read(api)).has_value());
  BOOST_TEST(f.script.last().header("authorization") == "Bearer from-plugin");
  BOOST_TEST(f.runs() == 1u);
}

BOOST_AUTO_TEST_CASE(expired_token_is_requested_again) {
  plugin_fixture f;
  auto& api =
      f.use(f.with_plugin(f.token("t", R"(,"expirationTimestamp":"2020-01-01T00:00:00Z")")));
  for (int i = 0; i < 3; ++i) BOOST_TEST(f.call(read(api)).has_value());
  BOOST_TEST(f.runs() == 3u);
  auto& later =
      f.use(f.with_plugin(f.token("t", R"(,"expirationTimestamp":"2199-01-01T00:00:00Z")")));
  for (int i = 0; i < 3; ++i) BOOST_TEST(f.call(read(later)).has_value());
  BOOST_TEST(f.runs() == 4u);
}

BOOST_AUTO_TEST_CASE(after_a_401_the_plugin_is_run_again) {
  plugin_fixture f;
  auto& api =
      f.use(f.with_plugin("if [ -e '" + f.dir.in("flag") + "' ]; then\n" + f.token("second") +
                          "else touch '" + f.dir.in("flag") + "'\n" + f.token("first") + "fi\n"));
  f.script.answers(only("Bearer second"));
  const auto got = f.call(read(api));
  BOOST_TEST(got.has_value(), (got ? "" : got.error().message));
  BOOST_TEST(f.script.count() == 2u);
  BOOST_TEST(f.runs() == 2u);
}

BOOST_AUTO_TEST_CASE(plugin_may_give_a_certificate) {
  plugin_fixture f(protocol::h2, true);
  const auto& pki = the_pki();
  const auto escaped = [](std::string text) {
    for (auto at = text.find('\n'); at != text.npos; at = text.find('\n')) {
      text.replace(at, 1, "\\n");
    }
    return text;
  };
  f.dir.write("answer",
              R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",)"
              R"("status":{"clientCertificateData":")" +
                  escaped(pki.client.certificate) + R"(","clientKeyData":")" +
                  escaped(pki.client.key) + R"("}})");
  BOOST_TEST(f.call(read(f.use(f.with_plugin("cat '" + f.dir.in("answer") + "'\n")))).has_value());
  BOOST_TEST(f.script.last().client == "runtime-1");
  BOOST_TEST(f.script.last().header("authorization") == "");
}

BOOST_AUTO_TEST_CASE(plugin_receives_the_cluster_information) {
  plugin_fixture f;
  auto how = f.with_plugin("echo \"$KUBERNETES_EXEC_INFO\" > '" + f.dir.in("info") +
                           "'\necho \"$1 $2 $MORE\" > '" + f.dir.in("arguments") + "'\n" +
                           "if read line; then exit 9; fi\n" + f.token("t"));
  how.exec->arguments = {"get", "a token"};
  how.exec->environment = {{"MORE", "more"}};
  how.exec->provide_cluster_info = true;
  how.exec->cluster_config = R"({"audience":"x"})";
  const auto got = f.call(read(f.use(how)));
  BOOST_REQUIRE_MESSAGE(got.has_value(), got.error().message);
  const auto text = [&](const char* name) {
    return rw::tls::test::good(rw::tls::read_file(f.dir.in(name)));
  };
  BOOST_TEST(text("arguments") == "get a token more\n");
  const auto info = boost::json::parse(text("info"));
  BOOST_TEST(info.at("apiVersion") == "client.authentication.k8s.io/v1");
  BOOST_TEST(info.at("kind") == "ExecCredential");
  BOOST_TEST(info.at("spec").at("interactive") == false);
  const auto& cluster = info.at("spec").at("cluster");
  BOOST_TEST(cluster.at("server").as_string() == how.server);
  BOOST_TEST(cluster.at("certificate-authority-data").as_string() == base64_encode(how.ca));
  BOOST_TEST(cluster.at("config").at("audience") == "x");
}

BOOST_AUTO_TEST_CASE(plugin_that_fails_is_named_with_its_last_words_and_the_hint) {
  plugin_fixture f;
  const auto name = "cannot get configmaps team/a: credential plugin '" + f.dir.in("plugin") + "' ";
  const std::string hint = " (get it at example.com)";
  BOOST_TEST(f.failure_of("echo one >&2\necho 'log in first' >&2\nexit 7\n") ==
             name + "ended with status 7: log in first" + hint);
  BOOST_TEST(f.failure_of("kill -9 $$\n") == name + "ended with status 137" + hint);
  BOOST_TEST(f.failure_of("echo '{\"token\":'\n") == name + "wrote no JSON object" + hint);
  BOOST_TEST(f.failure_of("echo '{}'\n") == name + "wrote no ExecCredential" + hint);
  const std::string head =
      R"(echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1)";
  BOOST_TEST(f.failure_of(head + "beta1\"}'\n") ==
             name +
                 "answered in client.authentication.k8s.io/v1beta1, not "
                 "client.authentication.k8s.io/v1" +
                 hint);
  BOOST_TEST(f.failure_of(head + "\"}'\n") ==
             name + "wrote an ExecCredential without status" + hint);
  BOOST_TEST(f.failure_of(head + "\",\"status\":{}}'\n") ==
             name + "gave neither a token nor a client certificate" + hint);
  BOOST_TEST(f.failure_of(head + "\",\"status\":{\"clientCertificateData\":\"x\"}}'\n") ==
             name + "gave a client certificate without its key" + hint);
  BOOST_TEST(f.failure_of(f.token("x", R"(,"expirationTimestamp":"soon")")) ==
             name + "gave an expirationTimestamp that is no time" + hint);
  BOOST_TEST(
      f.failure_of("yes | head -c 2000000\n").starts_with(name + "wrote more than 1048576 bytes"));

  auto how = f.with_plugin("");
  how.exec->command = "no-such-plugin";
  const auto missing = f.call(read(f.use(how)));
  BOOST_REQUIRE(missing.has_error());
  BOOST_TEST(missing.error().message ==
             "cannot get configmaps team/a: credential plugin 'no-such-plugin' cannot be started: "
             "No such file or directory" +
                 hint);
}

BOOST_AUTO_TEST_CASE(plugin_that_has_failed_is_tried_again_with_the_next_request) {
  plugin_fixture f;
  auto& api = f.use(f.with_plugin("[ -e '" + f.dir.in("flag") + "' ] || exit 1\n" + f.token("t")));
  BOOST_TEST(f.call(read(api)).has_error());
  f.dir.write("flag", "");
  BOOST_TEST(f.call(read(api)).has_value());
}

BOOST_AUTO_TEST_CASE(plugin_that_hangs_does_not_keep_the_client_from_closing) {
  plugin_fixture f;
  // The child of the shell has to go, too.
  auto& api =
      f.use(f.with_plugin("sleep 1000 &\necho started >> '" + f.dir.in("runs") + "'\nwait\n"));
  auto done = asio::co_spawn(f.here.context, read(api), asio::use_future);
  BOOST_TEST(http::test::eventually(
      [&] { return std::filesystem::exists(f.dir.in("runs")) && f.runs() == 2; }));
  f.close();
  const auto got = done.get();
  BOOST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().is(errc::shut_down));
}

BOOST_AUTO_TEST_SUITE_END()
