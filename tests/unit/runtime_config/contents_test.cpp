// What becomes of the stored contents while they can't be stored.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime_config/land.hpp"
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rw::runtime_config_test {
BOOST_AUTO_TEST_SUITE(contents)

using namespace std::chrono_literals;

namespace {

/// A control plane with one runtime, where contents may be refused to be stored.
struct storing : land {
  storing() : land(1) {
    on_request = [this](const std::string& cluster, const std::string& verb,
                        const std::string& path) {
      if (dead) return k8s::devserver::fault{.drop = true};
      const bool takes =
          cluster == "skr" && verb == "patch" && path.ends_with("/secrets/registry-credentials");
      // The first is a dry run. What is written is not heard of any more.
      if (takes && dies_after > 0 && --dies_after == 0) {
        dead = true;
        return k8s::devserver::fault{};
      }
      if (takes && !answers.empty()) {
        const auto next = answers.front();
        answers.erase(answers.begin());
        return next;
      }
      if (takes && rejects > 0) {
        --rejects;
        return k8s::devserver::fault{.status = 422};
      }
      if (takes && slow) return k8s::devserver::fault{.latency = 1s};
      const bool stores =
          !test::reads(verb) && path.find(settings.direct.state_namespace) != path.npos;
      if (verb == "update" && stores && lists_fail != 0) {
        return k8s::devserver::fault{.status = lists_fail};
      }
      if (cluster == "skr" && cut_off) return k8s::devserver::fault{.drop = true};
      return k8s::devserver::fault{.status = refuses && stores ? 403U : 0U};
    };
    add_runtime("skr");
  }
  ~storing() override { end(); }
  storing(const storing&) = delete;
  storing& operator=(const storing&) = delete;

  void install() {
    begin(bootstrapper_mode::direct);
    pass(10s);
    set_all_ready();
    pass(4min);
    BOOST_TEST(lacks("skr") == "");
  }

  /// A new pull Secret is written, and nobody hears that the runtime has it.
  void rotate_unheard() {
    dies_after = 2;
    ++now.pull_secret;
    put(&versions::pull_secret);
    pass(1min);
    BOOST_TEST(dead);
    end();
    dead = false;
    BOOST_TEST(content_of("skr").at.pull_secret == now.pull_secret);
  }

  /// By a tenant.
  void remove_pull_secret() {
    (void)call(api("skr").remove(secrets_type(), {"kyma-system", "registry-credentials"}));
  }
  /// A tenant deletes the second one, and a manager that begins later finds it rejected, too.
  void delete_and_reject(std::vector<k8s::devserver::fault> first) {
    install();
    ++now.pull_secret;
    put(&versions::pull_secret);
    pass(1min);
    BOOST_TEST(content_of("skr").at.pull_secret == 2);
    answers = std::move(first);
    remove_pull_secret();
    never_has(1, 1min);
    BOOST_TEST(answers.empty());
    end();
    rejects = 1;
    begin(bootstrapper_mode::direct);
    never_has(1, 1min);
    pass(10min);
    BOOST_TEST(lacks("skr") == "");
  }
  void never_has(int version, std::chrono::seconds time) {
    for (auto passed = 0ms; passed < time; passed += 100ms) {
      pass(100ms);
      BOOST_TEST(content_of("skr").at.pull_secret != version);
    }
  }

  bool refuses = false;
  unsigned lists_fail = 0;  ///< status of updates of lists, contents can be stored; 0: lists, too
  bool cut_off = false;     ///< "skr"
  bool slow = false;        ///< writes of the pull Secret to "skr"
  std::vector<k8s::devserver::fault> answers = {};  ///< to the next writes of the pull Secret
  int rejects = 0;     ///< writes of the pull Secret, likewise, which the runtime does not take
  bool dead = false;   ///< the manager, which does not know it
  int dies_after = 0;  ///< writes of the pull Secret to the runtime, dry runs included; 0: it lives
};

}  // namespace

/// Until then a runtime would have nothing to fall back to.
BOOST_FIXTURE_TEST_CASE(content_that_could_not_be_stored_is_stored_before_the_resync, storing) {
  refuses = true;
  install();
  const auto warned = [this] {
    return k8s::find(bootstrapper("skr"), {"status", "warnings"}) != nullptr;
  };
  BOOST_TEST(warned());
  refuses = false;
  pass(2min);
  BOOST_TEST(!warned());
}

/// What is stored is older.
BOOST_FIXTURE_TEST_CASE(pull_secret_that_could_not_be_stored_stays_where_its_source_is_deleted,
                        storing) {
  install();
  refuses = true;
  ++now.pull_secret;
  put(&versions::pull_secret);
  pass(1min);
  withdraw(&versions::pull_secret);
  pass(1min);
  BOOST_TEST(content_of("skr").at.pull_secret == 2);
  end();
  begin(bootstrapper_mode::direct);
  pass(1min);
  BOOST_TEST(content_of("skr").at.pull_secret == 2);
  const auto synced = k8s::find_condition(bootstrapper("skr"), "ConfigurationSynced");
  BOOST_TEST(synced->reason == "ContentLost");
  ++now.pull_secret;
  put(&versions::pull_secret);
  pass(1min);
  BOOST_TEST(lacks("skr") == "");
}

/// Though nobody has heard that the runtime has it.
BOOST_FIXTURE_TEST_CASE(pull_secret_stays_where_its_source_goes_in_the_midst_of_its_first_write,
                        storing) {
  install();
  rotate_unheard();
  withdraw(&versions::pull_secret);
  begin(bootstrapper_mode::direct);
  pass(1min);
  BOOST_TEST(content_of("skr").at.pull_secret == 2);
}

/// Nor in later passes, while the source can't be read.
BOOST_FIXTURE_TEST_CASE(
    pull_secret_that_could_not_be_stored_stays_where_its_source_goes_in_the_midst_of_its_write,
    storing) {
  install();
  refuses = true;
  rotate_unheard();
  spoil(&versions::pull_secret);
  for (int i = 0; i < 2; ++i) {
    begin(bootstrapper_mode::direct);
    pass(1min);
    BOOST_TEST(content_of("skr").at.pull_secret == 2);
    end();
  }
}

BOOST_FIXTURE_TEST_CASE(pull_secret_stays_where_the_next_is_rejected_after_its_first_write,
                        storing) {
  install();
  rotate_unheard();
  ++now.pull_secret;
  put(&versions::pull_secret);
  rejects = 1;
  begin(bootstrapper_mode::direct);
  pass(1min);
  BOOST_TEST(content_of("skr").at.pull_secret == 2);
}

/// What is stored is older.
BOOST_FIXTURE_TEST_CASE(pull_secret_that_could_not_be_stored_stays_where_the_next_is_rejected,
                        storing) {
  install();
  refuses = true;
  for (const int rejected : {0, 1}) {
    rejects = rejected;
    ++now.pull_secret;
    put(&versions::pull_secret);
    pass(1min);
    BOOST_TEST(content_of("skr").at.pull_secret == 2);
  }
  rejects = 1;
  end();
  begin(bootstrapper_mode::direct);
  pass(1min);
  BOOST_TEST(content_of("skr").at.pull_secret == 2);
}

/// Nor if nobody has heard that the runtime has it.
BOOST_FIXTURE_TEST_CASE(
    pull_secret_that_could_not_be_stored_stays_where_the_next_is_rejected_after_its_first_write,
    storing) {
  install();
  refuses = true;
  rotate_unheard();
  ++now.pull_secret;
  put(&versions::pull_secret);
  for (int i = 0; i < 2; ++i) {
    rejects = 1;
    begin(bootstrapper_mode::direct);
    pass(1min);
    BOOST_TEST(content_of("skr").at.pull_secret == 2);
    end();
  }
  rejects = 0;
  begin(bootstrapper_mode::direct);
  pass(1min);
  BOOST_TEST(lacks("skr") == "");
}

/// What the runtime has had is not forgotten with it.
BOOST_FIXTURE_TEST_CASE(pull_secret_that_is_deleted_and_then_rejected_does_not_go_back, storing) {
  delete_and_reject({{}, {.drop = true}, {.status = 422}});  // a dry run, a write, a dry run
}

BOOST_FIXTURE_TEST_CASE(pull_secret_that_is_deleted_and_whose_write_is_rejected_does_not_go_back,
                        storing) {
  delete_and_reject({{}, {.status = 422}});  // a dry run, a write
}

BOOST_FIXTURE_TEST_CASE(pull_secret_that_nobody_heard_of_and_that_is_rejected_does_not_go_back,
                        storing) {
  install();
  rotate_unheard();
  remove_pull_secret();
  for (const int rejected : {2, 1}) {  // dry runs of both, then of the newest
    rejects = rejected;
    begin(bootstrapper_mode::direct);
    never_has(1, 1min);
    end();
  }
  begin(bootstrapper_mode::direct);
  pass(10min);
  BOOST_TEST(lacks("skr") == "");
}

/// What is stored as the newest is older, and which of the two is newer is not known any more.
BOOST_FIXTURE_TEST_CASE(pull_secret_waits_until_it_is_stored_as_the_newest, storing) {
  install();
  lists_fail = 503;
  ++now.pull_secret;
  put(&versions::pull_secret);
  pass(1min);
  BOOST_TEST(content_of("skr").at.pull_secret == 1);
  const auto synced = k8s::find_condition(bootstrapper("skr"), "ConfigurationSynced");
  BOOST_TEST(synced->message.find("waits until it can be stored") != std::string::npos);
  spoil(&versions::pull_secret);
  pass(1min);
  BOOST_TEST(content_of("skr").at.pull_secret == 1);
  put(&versions::pull_secret);
  lists_fail = 0;
  pass(2min);
  BOOST_TEST(lacks("skr") == "");
}

BOOST_FIXTURE_TEST_CASE(pull_secret_whose_source_is_spoilt_in_the_midst_of_a_pass_stays_or_waits,
                        storing) {
  add_runtime("other");
  install();
  slow = true;
  lists_fail = 503;
  ++now.pull_secret;
  put(&versions::pull_secret);
  pass(500ms);
  spoil(&versions::pull_secret);
  std::map<std::string, int> had;
  for (int i = 0; i < 600; ++i) {
    pass(100ms);
    for (const std::string runtime : {"skr", "other"}) {
      const auto has = content_of(runtime).at.pull_secret;
      BOOST_TEST(has >= std::exchange(had[runtime], has));
    }
    lists_fail = i < 100 ? 503 : 0;
  }
}

/// It was never listed, so it is no earlier one.
BOOST_FIXTURE_TEST_CASE(pull_secret_that_is_stored_but_not_as_the_newest_stays, storing) {
  install();
  lists_fail = 403;
  ++now.pull_secret;
  put(&versions::pull_secret);
  pass(1min);
  BOOST_TEST(content_of("skr").at.pull_secret == 2);
  spoil(&versions::pull_secret);
  pass(1min);
  lists_fail = 0;
  end();
  begin(bootstrapper_mode::direct);
  pass(1min);
  BOOST_TEST(content_of("skr").at.pull_secret == 2);
}

BOOST_FIXTURE_TEST_CASE(pull_secret_before_the_previous_gives_way_though_the_source_is_spoilt,
                        storing) {
  add_runtime("other");
  install();
  cut_off = true;
  for (int i = 0; i < 3; ++i) {
    ++now.pull_secret;
    put(&versions::pull_secret);
    pass(1min);
  }
  spoil(&versions::pull_secret);
  pass(1min);
  end();
  begin(bootstrapper_mode::direct);
  pass(1min);
  cut_off = false;
  pass(6min);
  BOOST_TEST(content_of("skr").at.pull_secret == 4);
}

/// Which content was rolled out completely is known again, and with it whose content is on trial.
BOOST_AUTO_TEST_CASE(canary_is_the_same_after_the_contents_were_lost_with_their_namespace) {
  land all(1);
  const std::string ns = all.settings.direct.state_namespace;
  all.settings.rollout.canaries = "1";
  const auto go_on = [&all] {
    for (int i = 0; i < 4; ++i) {
      all.pass(5s);
      for (const auto* name : {"r1", "r2"}) all.run_pods(name);
    }
  };
  for (const auto* name : {"r1", "r2"}) all.add_runtime(name);
  all.begin(bootstrapper_mode::direct);
  go_on();
  all.finish(all.remove("kcp", namespaces_type(), {{}, ns}));
  all.bad.insert(++all.now.manifests);
  all.put(&versions::manifests);
  go_on();
  all.finish(all.define({}, {ns}));
  ++all.now.config;
  all.put(&versions::config);
  go_on();
  all.end();
  ++all.now.trust_bundle;
  all.put(&versions::trust_bundle);
  all.begin(bootstrapper_mode::direct);
  go_on();
  const auto crash = [&all](const char* name) { return all.content_of(name).at.manifests == 2; };
  BOOST_TEST((crash("r1") != crash("r2")));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_config_test
