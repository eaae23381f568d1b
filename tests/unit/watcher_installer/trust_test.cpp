// The order in which trust changes on a runtime, step by step, against the world's invariants.

#include "rw/reactors/watcher_installer/trust.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/watcher_installer/installation.hpp"
#include "rw/reactors/watcher_installer/render.hpp"
#include "rw/tls/trust_store.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/watcher_installer/samples.hpp"
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(trust)

namespace json = boost::json;
using namespace rw::watcher_installer;
using namespace std::chrono_literals;
using std::chrono::system_clock;

namespace {

bool believes(const std::string& bundle, const std::string& certificate) {
  const auto store = tls::trust_store::from_pem(bundle);
  const auto own = tls::certificate::from_pem(certificate);
  return store && own && store->verify(*own, {}, tls::purpose::server_auth).has_value();
}

/// A runtime as its API server keeps it.
class runtime {
 public:
  trust_step look(const wanted_trust& wanted) const {
    return next_step(wanted, observe(present()), delays, now);
  }

  /// One look with what it writes.
  trust_step step(const wanted_trust& wanted) {
    auto next = look(wanted);
    write(next);
    return next;
  }

  void write(const trust_step& next) {
    const inputs what{.ca_bundle = next.bundle.pem(),
                      .bundle_since = next.bundle_since,
                      .certificate = next.certificate,
                      .key = next.key,
                      .certificate_since = next.certificate_since,
                      .restart_trigger = next.restart_trigger,
                      .watchers = watchers};
    for (auto& one : rw::watcher_installer::render(templates::built_in(), {}, what)) {
      if (is(one, "Secret", "skr-webhook-tls") && !next.certificate.empty()) secret = one;
      if (is(one, "Deployment", "skr-webhook")) deployment = one;
      if (is(one, "ValidatingWebhookConfiguration", "skr-webhook")) configuration = one;
    }
  }

  present_objects present() const {
    return {secret ? &*secret : nullptr, configuration ? &*configuration : nullptr,
            deployment ? &*deployment : nullptr};
  }
  std::string entry(const char* name) const {
    return secret ? k8s::secret_data(*secret, name).value_or("") : "";
  }
  std::string bundle() const { return entry("ca.crt"); }
  std::string certificate() const { return entry("tls.crt"); }
  std::string trigger() const {
    return std::string(
        k8s::find_string(*deployment, {"spec", "template", "metadata", "labels", restart_label}));
  }

  trust_delays delays{.propagation = 10s, .retirement = 10min};
  system_clock::time_point now = system_clock::now();
  std::vector<watcher> watchers = {sample_watcher()};
  std::optional<json::value> secret, configuration, deployment;
};

wanted_trust want(const std::string& bundle, const tls::key_pair& own) {
  return {tls::ca_bundle::parse(bundle).value(), own.certificate, own.key};
}

const authority& first() {
  static const authority one("klm-watcher");
  return one;
}
/// Of the same name, as a rotated CA is.
const authority& second() {
  static const authority one("klm-watcher");
  return one;
}

}  // namespace

BOOST_AUTO_TEST_CASE(new_runtime_gets_everything_at_once) {
  runtime skr;
  const auto own = first().issue();
  const auto step = skr.step(want(first().pem(), own));
  BOOST_TEST(step.pending == "");
  BOOST_TEST((step.again == 0s));
  BOOST_TEST(skr.certificate() == own.certificate);
  BOOST_TEST(skr.bundle() == first().pem());
}

BOOST_AUTO_TEST_CASE(settled_runtime_is_not_changed) {
  runtime skr;
  const auto own = first().issue();
  const auto before = skr.step(want(first().pem(), own));
  skr.now += 1h;
  const auto after = skr.look(want(first().pem(), own));
  BOOST_TEST((after.bundle == before.bundle));
  BOOST_TEST(after.bundle_since == before.bundle_since);
  BOOST_TEST(after.certificate_since == before.certificate_since);
  const auto summary = summary_of(observe(skr.present()));
  BOOST_TEST_REQUIRE(summary.has_value());
  const auto authority = tls::certificate::from_pem(first().pem()).value().fingerprint();
  BOOST_TEST(summary->authorities == std::vector<std::string>{authority});
  BOOST_TEST(summary->client_issuer == authority);
}

BOOST_AUTO_TEST_CASE(new_certificate_waits_until_the_grown_bundle_was_in_place) {
  runtime skr;
  const auto old = first().issue();
  skr.step(want(first().pem(), old));
  skr.now += 1h;
  const auto both = second().pem() + first().pem();
  const auto next = want(both, second().issue());

  auto step = skr.step(next);
  BOOST_TEST(skr.bundle() == both);
  BOOST_TEST(skr.certificate() == old.certificate);
  BOOST_TEST(step.pending == "the new certificate waits until the runtime trusts it");
  BOOST_TEST((step.again == 10s));

  skr.now += 4s;
  step = skr.step(next);
  BOOST_TEST(skr.certificate() == old.certificate);
  BOOST_TEST((step.again > 5s && step.again <= 7s));

  skr.now += 7s;
  step = skr.step(next);
  BOOST_TEST(step.pending == "");
  BOOST_TEST(skr.certificate() == next.certificate);
  BOOST_TEST(skr.entry("tls.key") == next.key);
}

BOOST_AUTO_TEST_CASE(wait_begins_again_when_the_bundle_changes_again) {
  runtime skr;
  skr.step(want(first().pem(), first().issue()));
  const auto next = second().issue();
  skr.now += 1h;
  skr.step(want(second().pem() + first().pem(), next));
  skr.now += 9s;
  const authority third("third");
  const auto all = third.pem() + second().pem() + first().pem();
  skr.step(want(all, next));
  skr.now += 5s;
  BOOST_TEST(skr.look(want(all, next)).certificate != next.certificate);
  skr.now += 6s;
  BOOST_TEST(skr.look(want(all, next)).certificate == next.certificate);
}

BOOST_AUTO_TEST_CASE(webhook_that_was_changed_back_holds_the_certificate_up) {
  runtime skr;
  skr.step(want(first().pem(), first().issue()));
  const auto before = skr.configuration;
  skr.now += 1h;
  const auto next = want(second().pem() + first().pem(), second().issue());
  skr.step(next);
  skr.now += 1min;
  skr.configuration = before;
  const auto step = skr.step(next);
  BOOST_TEST(skr.certificate() != next.certificate);
  BOOST_TEST((step.again == 10s));
}

BOOST_AUTO_TEST_CASE(renewed_certificate_of_a_trusted_authority_goes_out_at_once) {
  runtime skr;
  skr.step(want(first().pem(), first().issue()));
  skr.now += 1h;
  const auto next = want(first().pem(), first().issue());
  skr.step(next);
  BOOST_TEST(skr.certificate() == next.certificate);
}

BOOST_AUTO_TEST_CASE(certificate_that_the_bundle_does_not_believe_never_goes_out) {
  runtime skr;
  const auto old = first().issue();
  skr.step(want(first().pem(), old));
  skr.now += 1h;
  const auto step = skr.step(want(first().pem(), second().issue()));
  BOOST_TEST(step.pending == "the certificate is not issued, or not yet, by a CA of the bundle");
  BOOST_TEST((step.again == 0s));
  BOOST_TEST(skr.certificate() == old.certificate);
}

BOOST_AUTO_TEST_CASE(certificate_that_nobody_believes_any_more_is_replaced_at_once) {
  runtime skr;
  skr.step(want(first().pem(), first().issue("runtime-1", 1h)));
  skr.now += 2h;  // it has expired
  const auto next = want(second().pem() + first().pem(), second().issue());
  skr.step(next);
  BOOST_TEST(skr.certificate() == next.certificate);
}

BOOST_AUTO_TEST_CASE(authority_that_is_given_up_stays_while_its_certificate_is_served) {
  runtime skr;
  const auto old = first().issue();
  skr.step(want(first().pem(), old));
  skr.now += 1h;
  const auto next = want(second().pem(), second().issue());
  skr.step(next);
  BOOST_TEST(believes(skr.bundle(), old.certificate));
  BOOST_TEST(believes(skr.bundle(), next.certificate));
  skr.now += 11s;
  auto step = skr.step(next);
  BOOST_TEST(skr.certificate() == next.certificate);
  BOOST_TEST(believes(skr.bundle(), old.certificate), "its pods may still serve the old one");
  skr.now += 5min;
  step = skr.step(next);
  BOOST_TEST(believes(skr.bundle(), old.certificate));
  BOOST_TEST((step.again > 4min && step.again < 6min));
  skr.now += 6min;
  step = skr.step(next);
  BOOST_TEST(skr.bundle() == second().pem());
  BOOST_TEST((step.again == 0s));
}

BOOST_AUTO_TEST_CASE(lost_secret_comes_back_only_when_the_webhooks_believe_it) {
  runtime skr;
  skr.step(want(first().pem(), first().issue()));
  skr.secret.reset();
  skr.now += 1h;
  const auto next = want(second().pem() + first().pem(), second().issue());
  auto step = skr.step(next);
  BOOST_TEST(!skr.secret.has_value());
  BOOST_TEST((step.again == 10s));
  skr.now += 6s;  // somebody else looks meanwhile
  skr.step(next);
  skr.now += 5s;
  step = skr.step(next);
  BOOST_TEST(skr.certificate() == next.certificate);
}

BOOST_AUTO_TEST_CASE(time_in_the_future_is_not_believed) {
  runtime skr;
  skr.step(want(first().pem(), first().issue()));
  const auto next = want(second().pem() + first().pem(), second().issue());
  skr.now += 1h;
  skr.step(next);
  skr.now -= 30min;  // another machine's clock
  auto step = skr.step(next);
  BOOST_TEST((step.again == 10s));
  skr.now += 11s;
  skr.step(next);
  BOOST_TEST(skr.certificate() == next.certificate);
}

BOOST_AUTO_TEST_CASE(malformed_certificate_does_no_harm) {
  runtime skr;
  skr.step(want(first().pem(), first().issue()));
  const auto step = skr.look({tls::ca_bundle(), "garbage", "garbage"});
  BOOST_TEST(step.certificate == skr.certificate());
  BOOST_TEST(step.pending != "");
}

BOOST_AUTO_TEST_CASE(while_there_is_no_certificate_only_the_bundle_grows) {
  runtime skr;
  const auto old = first().issue();
  skr.step(want(first().pem(), old));
  skr.now += 1h;
  const auto both = second().pem() + first().pem();
  skr.step(want(both, {}));
  BOOST_TEST(skr.bundle() == both);
  BOOST_TEST(skr.certificate() == old.certificate);
  runtime empty;
  BOOST_TEST(empty.look(want(both, {})).certificate == "");
}

BOOST_AUTO_TEST_CASE(at_every_moment_of_many_rotations_the_served_certificate_is_believed) {
  runtime skr;
  skr.watchers.push_back(sample_watcher("other"));
  std::string bundle = first().pem();
  auto own = first().issue();
  skr.step(want(bundle, own));
  std::string served = skr.certificate();  // by pods, which follow the Secret later
  for (int i = 1; i <= 8; ++i) {
    const authority next("klm-watcher");
    bundle = next.pem() + bundle;
    own = next.issue();
    for (int look = 0; look < 5; ++look) {
      skr.step(want(bundle, own));
      for (const auto& webhook : skr.configuration->at("webhooks").as_array()) {
        json::value holder = {{"data", {{"x", webhook.at("clientConfig").at("caBundle")}}}};
        const auto trusted = k8s::secret_data(holder, "x").value();
        BOOST_TEST(believes(trusted, skr.certificate()));
        BOOST_TEST(believes(trusted, served));
      }
      BOOST_TEST(believes(skr.bundle(), skr.certificate()));
      if (look == 3) served = skr.certificate();
      skr.now += 4s;
    }
    BOOST_TEST(skr.certificate() == own.certificate);
  }
}

BOOST_AUTO_TEST_CASE(summary_holds_what_webhooks_and_secret_have_in_common) {
  const auto fingerprint = [](const authority& of) {
    return tls::certificate::from_pem(of.pem()).value().fingerprint();
  };
  observed_trust has{.bundle = tls::ca_bundle::parse(second().pem() + first().pem()).value(),
                     .certificate = first().issue().certificate};
  BOOST_TEST(summary_of(has)->authorities.size() == 2U);  // nobody calls, so nobody distrusts
  has.webhooks = {tls::ca_bundle::parse(first().pem()).value()};
  BOOST_TEST(summary_of(has)->authorities == std::vector<std::string>{fingerprint(first())});
  BOOST_TEST(summary_of(has)->client_issuer == fingerprint(first()));
  has.certificate = authority("stranger").issue().certificate;
  BOOST_TEST(summary_of(has)->client_issuer == "");
  has.certificate = "garbage";
  BOOST_TEST(!summary_of(has));
}

BOOST_AUTO_TEST_CASE(new_certificate_restarts_no_pod_unless_it_is_asked_for) {
  runtime skr;
  skr.step(want(first().pem(), first().issue()));
  const auto as_in_manifests = skr.trigger();
  skr.now += 1h;
  const auto renewed = want(first().pem(), first().issue());
  skr.step(renewed);
  BOOST_TEST(skr.certificate() == renewed.certificate);
  BOOST_TEST(skr.trigger() == as_in_manifests);

  auto asked = want(first().pem(), first().issue());
  asked.restart_on_renewal = true;
  skr.step(asked);
  const auto restarted = skr.trigger();
  BOOST_TEST(restarted != as_in_manifests);
  BOOST_TEST(skr.look(asked).restart_trigger == restarted);
  asked.certificate = first().issue().certificate;
  BOOST_TEST(skr.look(asked).restart_trigger != restarted);
  // What an earlier version, or KLM, has written stays: to take it away would restart the pods.
  BOOST_TEST(skr.look(renewed).restart_trigger == restarted);
}

BOOST_AUTO_TEST_CASE(pods_are_not_restarted_before_their_certificate_comes) {
  runtime skr;
  auto before = want(first().pem(), first().issue());
  before.restart_on_renewal = true;
  skr.step(before);
  const auto trigger = skr.trigger();
  skr.now += 1h;
  auto next = want(second().pem() + first().pem(), second().issue());
  next.restart_on_renewal = true;
  skr.step(next);
  BOOST_TEST(skr.trigger() == trigger);
  skr.secret.reset();
  next.certificate = next.key = "";
  BOOST_TEST(skr.look(next).restart_trigger == trigger);
  next = want(second().pem() + first().pem(), second().issue());
  next.restart_on_renewal = true;
  skr.now += 11s;
  skr.step(next);
  BOOST_TEST(skr.trigger() != trigger);
}

namespace {

managed_watch watching(std::string manager, std::string field = "spec") {
  return {.manager = std::move(manager), .watched = {"g", "v1", "things"}, .field = field};
}
known_managers managers(std::vector<managed_watch> of) {
  return known_managers(std::move(of));
}
const std::chrono::sys_days day0 = std::chrono::year(2026) / 3 / 1;

trust_step managers_step(known_managers wanted, observed_trust has, system_clock::time_point now) {
  return next_step({.managers = std::move(wanted)}, has, {.propagation = 90s}, now);
}

}  // namespace

BOOST_AUTO_TEST_CASE(webhook_of_a_new_manager_waits_for_the_propagation_delay) {
  observed_trust has{.managers = managers({watching("a")}),
                     .managers_since = day0,
                     .called = managers({watching("a")})};
  const auto wanted = managers({watching("a"), watching("b")});
  const auto added = day0 + 1h;
  auto step = managers_step(wanted, has, added);
  BOOST_TEST((step.managers == wanted));
  BOOST_TEST(step.in_effect->knows(watching("a", "status")));
  BOOST_TEST(!step.in_effect->knows(watching("b")));
  BOOST_TEST((k8s::parse_rfc3339(step.managers_since).value() == added));
  BOOST_TEST((step.again == 90s));

  has.managers = step.managers;
  has.managers_since = added;
  step = managers_step(wanted, has, added + 89s);
  BOOST_TEST(!step.in_effect->knows(watching("b")));
  BOOST_TEST((step.again == 1s));
  step = managers_step(wanted, has, added + 90s);
  BOOST_TEST(step.in_effect->knows(watching("b")));
  BOOST_TEST((step.again == 0s));
  BOOST_TEST((k8s::parse_rfc3339(step.managers_since).value() == added));
  // Another new one does not hold up what has webhooks, and one that goes stays in the file until
  // its webhook has gone.
  has.called = wanted;
  step = managers_step(managers({watching("b"), watching("c")}), has, added + 91s);
  BOOST_TEST(step.in_effect->knows(watching("b")));
  BOOST_TEST(!step.in_effect->knows(watching("c")));
  BOOST_TEST(step.managers.knows(watching("a")));
}

BOOST_AUTO_TEST_CASE(new_certificate_waits_for_the_api_servers_if_the_pods_have_the_bundle) {
  runtime skr;
  skr.delays = {.propagation = 90s, .api_server = 10s};
  const auto old = first().issue();
  skr.step(want(first().pem(), old));
  skr.now += 1h;
  const auto next = want(second().pem() + first().pem(), second().issue());
  BOOST_TEST((skr.step(next).again == 90s));
  const auto look = [&](pods_word loaded) {
    auto has = observe(skr.present());
    has.loaded = loaded;
    auto out = next_step(next, has, skr.delays, skr.now);
    out.again =
        std::chrono::ceil<std::chrono::seconds>(out.again);  // annotations have microseconds
    return out;
  };
  skr.now += 4s;
  BOOST_TEST((look({}).again == 86s));
  BOOST_TEST((look({.certificate = true, .managers = true}).again == 86s));
  auto step = look({.bundle = true});
  BOOST_TEST((step.again == 6s));
  BOOST_TEST(step.certificate == old.certificate);
  skr.now += 6s;
  step = look({.bundle = true});
  BOOST_TEST(step.certificate == next.certificate);
  // It is a part of the propagation delay, and no more than that.
  skr.delays.propagation = 5s;
  BOOST_TEST(look({}).certificate == next.certificate);
}

BOOST_AUTO_TEST_CASE(new_subresource_waits_like_a_new_manager) {
  const observed_trust has{.managers = managers({watching("a")}),
                           .called = managers({watching("a")})};
  const auto step = managers_step(managers({watching("a", "scale")}), has, day0);
  BOOST_TEST(!step.in_effect->knows(watching("a", "scale")));
  BOOST_TEST(step.in_effect->knows(watching("a", "status")));
}

BOOST_AUTO_TEST_CASE(webhooks_wait_for_nothing_where_pods_count_every_manager_as_known) {
  // A new runtime, or the Secret of an image that has no such file.
  const auto step = managers_step(managers({watching("a")}), {}, day0);
  BOOST_TEST(!step.in_effect.has_value());
  BOOST_TEST((step.again == 0s));
  BOOST_TEST(step.managers_since == "");
}

BOOST_AUTO_TEST_CASE(time_of_the_managers_that_lies_ahead_is_not_believed) {
  const observed_trust has{.managers = managers({watching("a")}), .managers_since = day0 + 1h};
  const auto step = managers_step(managers({watching("a")}), has, day0);
  BOOST_TEST((step.again == 90s));
  BOOST_TEST((k8s::parse_rfc3339(step.managers_since).value() == day0));  // the wait begins now
  const observed_trust unknown{.managers = managers({watching("a")})};    // by an earlier version
  BOOST_TEST((managers_step(managers({watching("a")}), unknown, day0).again == 0s));
}

/// A runtime's owner may add one to our configuration; then our certificates go on.
BOOST_AUTO_TEST_CASE(webhooks_of_others_are_no_part_of_the_trust) {
  runtime skr;
  const auto wanted = want(first().pem(), first().issue());
  skr.step(wanted);
  const json::value foreign = {{"name", "policy.example.com"}, {"clientConfig", {{"url", "x"}}}};
  skr.configuration->as_object()["webhooks"].as_array().push_back(foreign);
  skr.now += 1h;
  const auto both = want(second().pem() + first().pem(), second().issue());
  const auto grown = skr.look(both);
  BOOST_TEST(grown.pending != "");
  skr.write(grown);
  skr.configuration->as_object()["webhooks"].as_array().push_back(foreign);
  skr.now += 11s;
  BOOST_TEST(skr.look(both).certificate == both.certificate);
}

BOOST_AUTO_TEST_CASE(observation_reads_for_what_webhooks_are_called) {
  runtime skr;
  skr.watchers = {sample_watcher("one"), sample_watcher("two")};
  skr.watchers[0].manager = "a";
  skr.watchers[1].manager = "b";
  skr.watchers[1].watched.subresource = "scale";
  skr.step(want(first().pem(), first().issue()));
  const auto has = observe(skr.present());
  BOOST_TEST(has.called.knows(watching("a", "status")));
  BOOST_TEST(!has.called.knows(watching("a", "scale")));
  BOOST_TEST(has.called.knows(watching("b", "scale")));
  BOOST_TEST(!has.called.knows(watching("c")));
  auto& webhooks = skr.configuration->as_object()["webhooks"].as_array();
  auto probe = webhooks.front();
  probe.at("clientConfig").at("service").as_object()["path"] = "/validate/runtime-watcher";
  webhooks.push_back(probe);
  const auto probed = observe(skr.present());
  BOOST_TEST(!probed.called.knows(watching("runtime-watcher")));
  BOOST_TEST(probed.webhooks.size() == has.webhooks.size() + 1);
  BOOST_TEST(has.managers.has_value());
}

BOOST_AUTO_TEST_CASE(bundle_is_parsed_once_and_another_text_is_another_bundle) {
  known_bundles known;
  const auto once = known.read(first().pem());
  const auto again = known.read(first().pem());
  BOOST_TEST_REQUIRE(once.size() == 1U);
  BOOST_TEST((once == again));
  BOOST_TEST((once.authorities().front().native() == again.authorities().front().native()));
  BOOST_TEST(known.read(second().pem() + first().pem()).size() == 2U);
  BOOST_TEST(known.read("nonsense").empty());
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
