#include "rw/reactors/cli/runtime_config_settings.hpp"

#include "rw/reactors/cli/options.hpp"

#include <cstdlib>

namespace rw::cli {

void add_bootstrapper_mode(CLI::App& app, bootstrapper_mode& value, const std::string& help) {
  const auto read = [&value](const std::string& text) { value = *parse_bootstrapper_mode(text); };
  app.add_option_function<std::string>("--bootstrapper-mode", read, help)
      ->check(CLI::IsMember({"off", "signal", "shadow", "direct"}))
      ->default_str("off");
}

void group_options(CLI::App& app, std::size_t first, const std::string& group) {
  const auto options = app.get_options({});
  for (auto i = first; i < options.size(); ++i) options[i]->group(group);
}

namespace {

/// Adds an option for a number or percentage of runtimes.
void add_share(CLI::App& app, const std::string& flag, runtime_rollout::share& to,
               const std::string& help) {
  const auto read = [&to](const std::string& text) { to = *runtime_rollout::parse_share(text); };
  const auto check = [](const std::string& text) {
    return runtime_rollout::parse_share(text) ? std::string()
                                              : "must be a number or a percentage: " + text;
  };
  app.add_option_function<std::string>(flag, read, help)
      ->type_name("N|N%")
      ->check(check)
      ->default_str(std::to_string(to.value) + (to.percent ? "%" : ""));
}

void describe_rollout(CLI::App& app, runtime_config_settings& to) {
  add(app, "--rollout-canaries", to.rollout.canaries, "N|N%|LABELS",
      "Runtimes that get a new watcher (image, resources, Deployment) first, and in mode direct "
      "new manifests and configuration: a number, a percentage (then 2 at least), or a label "
      "selector, of Kymas for the watcher and of Runtimes otherwise. A RuntimeRollout overrides it")
      ->check([](const std::string& text) {
        return runtime_rollout::is_canaries(text)
                   ? std::string()
                   : "must be a number, a percentage or a label selector: " + text;
      });
  add_share(app, "--rollout-max-unavailable", to.rollout.max_unavailable,
            "Maximum number of runtimes, after the canaries, that have the new content and are not "
            "ready; at least 1. A RuntimeRollout overrides it");
  add_share(app, "--rollout-failure-budget", to.rollout.failure_budget,
            "Number of runtimes that may fail with the new content, a percentage being 2 at least; "
            "one more pauses the roll-out, and so does each canary that fails. A RuntimeRollout "
            "overrides it");
  add_duration(app, "--rollout-canary-soak", to.rollout.soak,
               "Time for which canaries must be ready before other runtimes follow");
  add(app, "--rollout-prometheus", to.prometheus.url, "URL",
      "Prometheus that verifies the steps of roll-outs, such as "
      "https://prometheus.monitoring:9090; http with --rollout-prometheus-token-file only on a "
      "loopback address. Without it, steps that are to be verified admit no runtimes");
  add(app, "--rollout-prometheus-ca", to.prometheus.ca_file, "FILE",
      "PEM bundle that the certificate of --rollout-prometheus is checked against; by default the "
      "system's authorities")
      ->check(CLI::ExistingFile);
  add(app, "--rollout-prometheus-token-file", to.prometheus.token_file, "FILE",
      "File with the bearer token for --rollout-prometheus; read again when it changes")
      ->check(CLI::ExistingFile);
  app.add_flag("--rollout-none", to.rollout_none,
               "Roll nothing out: new content of the watcher and of the bootstrapper goes to all "
               "runtimes at once, as long as the flag is given. Without it, and without the "
               "definition of RuntimeRollouts or the rights to them, no new content goes to any");
  app.add_flag("--rollout-trust-at-once", to.direct.trust_at_once,
               "Apply a change of only the trust bundle to all runtimes at once, as is done with "
               "credentials. The bootstrapper restarts pods that use the bundle");
}

}  // namespace

void describe_runtime_config(CLI::App& app, runtime_config_settings& to) {
  const auto first = app.get_options({}).size();
  add_bootstrapper_mode(
      app, to.mode,
      "Writer of the Runtime Bootstrapper and its configuration to the runtimes: off (none); "
      "signal (this manager marks Runtimes, and Kyma Infrastructure Manager writes); shadow (as "
      "signal, and reports what direct would write); direct (this manager writes what "
      "RuntimeBootstrappers specify). "
      "A Runtime's annotation operator.kyma-project.io/bootstrapper-mode overrides all but off");
  const auto form = [&to](const std::string& text) {
    to.signal.form = text == "label" ? mark_form::label : mark_form::annotation;
  };
  app.add_option_function<std::string>(
         "--signal-by", form,
         "Form of the mark operator.kyma-project.io/force-patch-reconciliation=true on a Runtime; "
         "Kyma Infrastructure Manager reads the annotation only")
      ->check(CLI::IsMember({"annotation", "label"}))
      ->default_str("annotation");
  add_duration(app, "--signal-settle", to.signal.settle,
               "Time without changes of the configuration before Runtimes are marked");
  add_duration(
      app, "--signal-quiet", to.signal.timing.quiet,
      "Time for which a Runtime must be neither Pending nor Failed after the removal of its mark, "
      "to count as configured; a Runtime that was Pending counts when it is Ready");
  add_duration(app, "--signal-timeout", to.signal.timing.timeout,
               "Time after which a Runtime that is still Pending counts as failed");
  add_duration(app, "--signal-retry", to.signal.timing.retry,
               "Time from a mark to the next one for one configuration where Kyma "
               "Infrastructure Manager fails; doubles with each, up to 4h",
               std::chrono::seconds(1));
  app.add_flag("--signal-all-once", to.signal.signal_all_once,
               "Mark every Runtime once, if no configuration was ever signalled. Without it the "
               "first start marks none, since all are taken to have the present configuration");
  app.add_flag("--create-runtime-bootstrappers", to.direct.create_for_runtimes,
               "Create a RuntimeBootstrapper for each Runtime in mode shadow or direct that has "
               "none; it takes over what Kyma Infrastructure Manager has installed there");
  app.add_flag("--allow-inline-manifests", to.direct.allow_inline_manifests,
               "Allow manifests inside RuntimeBootstrappers: every user that may create one "
               "becomes admin on every runtime");
  app.add_flag(
      "--runtime-condition", to.direct.runtime_condition,
      "Maintain the condition RuntimeBootstrapperReady of Runtimes in mode direct, as Kyma "
      "Infrastructure Manager does for others; for landscapes where its own part is switched off");
  add(app, "--state-namespace", to.direct.state_namespace, "NAME",
      "Namespace in KCP of the Secrets with what was rolled out to runtimes, and the last valid "
      "content of each source; no other client should have access");
  const auto removal = [&to](const std::string& text) {
    to.direct.removal.enabled = text == "remove";
  };
  app.add_option_function<std::string>(
         "--deleted-source", removal,
         "Treatment of the pull Secret and the trust bundle on runtimes after the deletion of "
         "their source in KCP: keep (its last valid content stays) or remove (in a roll-out, and "
         "not from a runtime whose configuration refers to it)")
      ->check(CLI::IsMember({"keep", "remove"}))
      ->default_str("keep");
  add_duration(app, "--source-removal-delay", to.direct.removal.delay,
               "Time from the deletion of a source to its removal from runtimes, with "
               "--deleted-source=remove");
  add_duration(app, "--unused-content-after", to.direct.unused_content_after,
               "Time for which a stored content must have been found unused by one leader "
               "before it is deleted; 0s: the first resync that finds it so");
  app.add_flag("--watch-runtimes,!--no-watch-runtimes", to.direct.watch_runtimes,
               "Watch the objects written to runtimes, and repair drift at once; without it, at "
               "the next resync (on by default)");
  describe_rollout(app, to);
  const auto name = [&](const char* flag, std::string& into, const char* help) {
    add(app, flag, into, "NAME", help);
  };
  name("--config-map-name", to.direct.defaults.config,
       "Name of the ConfigMap with the bootstrapper's configuration, in kcp-system");
  name("--manifests-name", to.direct.defaults.manifests,
       "Name of the ConfigMap with the bootstrapper's manifests, in kcp-system");
  const auto name_or_none = [&](const char* flag, const char* variable, std::string& into,
                                const char* help) {
    // The parser takes an empty variable for one that is not set.
    const auto* const given = std::getenv(variable);
    if (given != nullptr && *given == '\0') into.clear();
    name(flag, into, help);
    check_object_names(app, {flag}, true);
  };
  name_or_none("--pull-secret-name", "RW_PULL_SECRET_NAME", to.direct.defaults.pull_secret,
               "Name of the Secret for pulling images on runtimes, in kcp-system; empty: none");
  name_or_none("--trust-bundle-name", "RW_TRUST_BUNDLE_NAME", to.direct.defaults.trust_bundle,
               "Name of the ClusterTrustBundle for runtimes, in KCP; empty: none");
  name("--target-namespace", to.direct.to.ns, "Namespace of the bootstrapper on runtimes");
  name("--target-deployment", to.direct.to.deployment,
       "Name of the bootstrapper's Deployment on runtimes");
  name("--target-config-map", to.direct.to.configuration,
       "Name of the ConfigMap with the bootstrapper's configuration on runtimes");
  name("--target-pull-secret", to.direct.to.pull_secret,
       "Name of the Secret for pulling images on runtimes, made of --pull-secret-name");
  name("--target-trust-bundle", to.direct.to.trust_bundle,
       "Name of the ClusterTrustBundle on runtimes; by default that of --trust-bundle-name");
  check_object_names(app, {"--state-namespace", "--config-map-name", "--manifests-name",
                           "--target-namespace", "--target-deployment", "--target-config-map",
                           "--target-pull-secret", "--target-trust-bundle"});
  group_options(app, first, "Configuration of runtimes");
}

}  // namespace rw::cli
