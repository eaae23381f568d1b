#include "reactors/cli/runtime_config_settings.hpp"

#include "reactors/cli/options.hpp"

#include <CLI/CLI.hpp>

namespace rw::cli {

void describe_runtime_config(CLI::App& app, runtime_config_settings& to) {
  const auto* const group = "Configuration of runtimes";
  app.add_option(
         "--bootstrapper-mode", to.mode_text,
         "How the Runtime Bootstrapper and its configuration come to the runtimes: off; "
         "signal (Runtimes are marked, and Kyma Infrastructure Manager writes); shadow (the "
         "same, and what direct would write is told); direct (RuntimeBootstrappers say what "
         "is written to runtimes). A Runtime's annotation "
         "operator.kyma-project.io/bootstrapper-mode overrides all but off")
      ->check(CLI::IsMember({"off", "signal", "shadow", "direct"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--signal-by", to.signal_by,
                 "What of a Runtime operator.kyma-project.io/force-patch-reconciliation=true is "
                 "set as")
      ->check(CLI::IsMember({"annotation", "label", "both"}))
      ->capture_default_str()
      ->group(group);
  add_duration(&app, "--signal-settle", "", to.settle, "2s",
               "How long the configuration must have been still before Runtimes are marked")
      ->group(group);
  app.add_flag("--create-runtime-bootstrappers", to.create_bootstrappers,
               "Runtimes in mode shadow or direct that have no RuntimeBootstrapper get one, which "
               "takes over what Kyma Infrastructure Manager has installed there")
      ->group(group);
  app.add_flag(
         "--watch-runtimes,!--no-watch-runtimes", to.watch_runtimes,
         "Watch on runtimes what was written there, and repair it at once; without it, at the "
         "next look (on by default)")
      ->group(group);
  app.add_option("--sync-concurrent", to.concurrent, "Runtimes that are written to at once")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str()
      ->group(group);
  const auto name = [&](const char* flag, std::string& into, const char* help) {
    app.add_option(flag, into, help)->type_name("NAME")->capture_default_str()->group(group);
  };
  name("--config-map-name", to.sources.config,
       "ConfigMap of the bootstrapper's configuration, in kcp-system");
  name("--manifests-name", to.sources.manifests,
       "ConfigMap of the bootstrapper's manifests, in kcp-system");
  name("--pull-secret-name", to.sources.pull_secret,
       "Secret for pulling images on runtimes, in kcp-system");
  name("--trust-bundle-name", to.sources.trust_bundle, "ClusterTrustBundle for runtimes");
  name("--signal-field-manager", to.field_manager,
       "Field manager of marks; a Runtime's marks under another name are somebody else's");
  check_object_names(
      app, {"--config-map-name", "--manifests-name", "--pull-secret-name", "--trust-bundle-name"});
}

void check_runtime_config(runtime_config_settings& to) {
  to.mode = parse_bootstrapper_mode(to.mode_text).value_or(bootstrapper_mode::off);
}

}  // namespace rw::cli
