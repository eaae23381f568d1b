#include "rw/reactors/shared/cluster_owners.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(cluster_owners_of_kymas)

using namespace rw;
using namespace std::chrono_literals;

namespace {

const std::chrono::system_clock::time_point day =
    std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);

cluster_claim claim(std::string name, std::vector<std::string> clusters,
                    std::chrono::seconds age = 0s, std::string uid = {}) {
  return {.kyma = {"kcp-system", name},
          .uid = uid.empty() ? "uid-" + name : uid,
          .created = day - age,
          .clusters = std::move(clusters)};
}

std::string decided(cluster_owners& owners, const cluster_claim& self,
                    std::vector<cluster_claim> rivals) {
  const auto* const owner = owners.decide(self, rivals);
  return owner == nullptr ? std::string() : owner->kyma.name;
}

const auto victim = claim("victim", {"id v", "server v"});
const auto older = claim("older", {"id o", "server v"}, 24h);

}  // namespace

BOOST_AUTO_TEST_CASE(kyma_without_rivals_owns_its_cluster) {
  cluster_owners owners;
  BOOST_TEST(decided(owners, victim, {}) == "");
  BOOST_TEST((*owners.recorded("server v") == victim.kyma));
}

BOOST_AUTO_TEST_CASE(recorded_owner_stays_the_owner_beside_an_older_kyma) {
  cluster_owners owners;
  BOOST_TEST(decided(owners, victim, {}) == "");
  BOOST_TEST(decided(owners, older, {victim}) == "victim");
  BOOST_TEST(decided(owners, victim, {older}) == "");
}

BOOST_AUTO_TEST_CASE(older_kyma_is_the_owner_without_a_record) {
  cluster_owners owners;
  BOOST_TEST(decided(owners, victim, {older}) == "older");
  BOOST_TEST(owners.recorded("id v") == nullptr);
  BOOST_TEST(decided(owners, older, {victim}) == "");
  BOOST_TEST(decided(owners, victim, {older}) == "older");
}

BOOST_AUTO_TEST_CASE(smaller_uid_decides_between_kymas_of_one_age) {
  const auto a = claim("a", {"id 1"}, 0s, "2");
  const auto b = claim("b", {"id 1"}, 0s, "1");
  cluster_owners owners;
  BOOST_TEST(decided(owners, a, {b}) == "b");
  BOOST_TEST(decided(owners, b, {a}) == "");
}

BOOST_AUTO_TEST_CASE(owner_whose_claim_changes_is_released) {
  cluster_owners owners;
  BOOST_TEST(decided(owners, victim, {}) == "");
  const auto moved = claim("victim", {"id v", "server elsewhere"});
  BOOST_TEST(decided(owners, older, {}) == "");
  BOOST_TEST(decided(owners, moved, {}) == "");
  BOOST_TEST((*owners.recorded("server v") == older.kyma));
}

BOOST_AUTO_TEST_CASE(owner_without_a_readable_kubeconfig_keeps_its_cluster) {
  cluster_owners owners;
  BOOST_TEST(decided(owners, victim, {}) == "");
  auto unreadable = claim("victim", {"id v"});
  unreadable.is_incomplete = true;
  BOOST_TEST(decided(owners, unreadable, {}) == "");
  BOOST_TEST(decided(owners, older, {unreadable}) == "victim");
}

BOOST_AUTO_TEST_CASE(kyma_that_is_created_again_does_not_inherit_a_record) {
  cluster_owners owners;
  BOOST_TEST(decided(owners, victim, {}) == "");
  auto again = victim;
  again.uid = "another";
  BOOST_TEST(decided(owners, older, {again}) == "");
  BOOST_TEST(decided(owners, again, {older}) == "older");
}

BOOST_AUTO_TEST_CASE(forgotten_kyma_owns_nothing) {
  cluster_owners owners;
  BOOST_TEST(decided(owners, victim, {}) == "");
  owners.forget(victim.kyma);
  BOOST_TEST(owners.recorded("server v") == nullptr);
  BOOST_TEST(decided(owners, older, {}) == "");
}

BOOST_AUTO_TEST_CASE(restored_record_counts_but_replaces_none) {
  cluster_owners owners;
  owners.restore(victim.kyma, victim.uid, victim.clusters);
  owners.restore(older.kyma, older.uid, older.clusters);
  BOOST_TEST(decided(owners, older, {victim}) == "victim");
  BOOST_TEST((owners.owned_by(older.kyma) == std::vector<std::string>{"id o"}));
}

BOOST_AUTO_TEST_CASE(at_most_one_of_two_kymas_owns_a_cluster_in_any_order) {
  for (const bool recorded : {false, true}) {
    for (const bool older_first : {false, true}) {
      cluster_owners owners;
      if (recorded) owners.restore(victim.kyma, victim.uid, victim.clusters);
      const auto& first = older_first ? older : victim;
      const auto& second = older_first ? victim : older;
      std::vector<std::string> own;
      for (int round = 0; round < 3; ++round) {
        own.clear();
        if (decided(owners, first, {second}).empty()) own.push_back(first.kyma.name);
        if (decided(owners, second, {first}).empty()) own.push_back(second.kyma.name);
        BOOST_TEST(own.size() == 1U);
        BOOST_TEST(own.front() == (recorded ? "victim" : "older"));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
