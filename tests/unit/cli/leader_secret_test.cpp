#include "rw/reactors/cli/leader_secret.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

namespace rw::leader_secret_test {
BOOST_AUTO_TEST_SUITE(leader_secret)

using namespace rw::cli;

namespace {

const cli::leader_secret written{"manager-6d9f_54e8", 8080, "secret"};

boost::json::value secret() {
  return {{"data", write_leader_secret(written)}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(secret_is_read_as_the_leader_writes_it) {
  const auto read = read_leader_secret(secret(), written.holder);
  BOOST_REQUIRE(read);
  BOOST_TEST(read->port == written.port);
  BOOST_TEST(read->token == written.token);
}

BOOST_AUTO_TEST_CASE(secret_of_another_holder_or_without_an_entry_is_none) {
  BOOST_TEST(!read_leader_secret(secret(), "manager-7777_54e8"));
  BOOST_TEST(!read_leader_secret(boost::json::object(), ""));
  for (const auto* entry : {"holder", "port", "token"}) {
    auto incomplete = secret();
    incomplete.at("data").as_object().erase(entry);
    BOOST_TEST(!read_leader_secret(incomplete, written.holder), entry);
  }
  for (const auto* port : {"", "0", "-1", "65536", "http"}) {
    auto wrong = secret();
    k8s::set_secret_data(wrong, "port", port);
    BOOST_TEST(!read_leader_secret(wrong, written.holder), port);
  }
}

BOOST_AUTO_TEST_CASE(pod_is_the_holder_without_its_number) {
  BOOST_TEST(pod_of("runtime-watcher-manager-6d9f_54e82dbb638e8fd4") ==
             "runtime-watcher-manager-6d9f");
  BOOST_TEST(pod_of("a_b_54e8") == "a_b");
}

BOOST_AUTO_TEST_CASE(leader_is_named_while_its_lease_lasts_and_as_the_former_one_then) {
  const auto text = [](const k8s::observed_leader& leader) {
    return text_of_leader(leader, "kcp-system", 8080, *k8s::parse_rfc3339("2026-01-01T00:00:22Z"));
  };
  k8s::observed_leader leader{.holder = "manager-6d9f_54e8",
                              .leads = true,
                              .renewed = k8s::parse_rfc3339("2026-01-01T00:00:10Z")};
  BOOST_TEST(text({}) == "this replica does not lead, and no other does");
  BOOST_TEST(
      text(leader) ==
      "this replica does not lead; pod manager-6d9f does, as its Lease says, renewed 12 s ago: "
      "kubectl -n kcp-system port-forward pod/manager-6d9f 8080");
  leader.leads = false;
  BOOST_TEST(text(leader) ==
             "this replica does not lead, and no other does: the Lease of pod manager-6d9f has "
             "expired, last renewed at 2026-01-01T00:00:10Z");
  leader.error = "timed out";
  BOOST_TEST(text(leader) ==
             "this replica does not lead, and cannot read the Lease (timed out): pod manager-6d9f "
             "held it, last renewed at 2026-01-01T00:00:10Z");
}

BOOST_AUTO_TEST_CASE(way_to_the_leader_is_a_pod_and_nothing_else) {
  BOOST_TEST(proxy_path("kcp-system", written).value() ==
             "/api/v1/namespaces/kcp-system/pods/manager-6d9f:8080/proxy");
  for (const auto* holder :
       {"", "_54e8", "../secrets/a_54e8", "a/b_54e8", "a?b_54e8", "A Host_54e8"}) {
    BOOST_TEST(!proxy_path("kcp-system", {.holder = holder, .port = 8080}), holder);
  }
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::leader_secret_test
