#include "reactors/cli/runtime_config_settings.hpp"

#include "reactors/cli/options.hpp"

#include <CLI/CLI.hpp>

namespace rw::cli {

void describe_runtime_config(CLI::App& app, runtime_config_settings& to) {
  const auto* const group = "Configuration of runtimes";
  app.add_option("--bootstrapper-mode", to.mode_text,
                 "How a changed configuration of the Runtime Bootstrapper comes to the runtimes: "
                 "off (Runtimes are not looked at), or signal (they are marked, and Kyma "
                 "Infrastructure Manager writes). A Runtime's annotation "
                 "operator.kyma-project.io/bootstrapper-mode overrides signal")
      ->type_name("MODE")
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
}

void check_runtime_config(runtime_config_settings& to, problems& wrong) {
  const auto mode = parse_bootstrapper_mode(to.mode_text);
  if (!mode) {
    wrong.add("--bootstrapper-mode must be off or signal, not: " + to.mode_text);
  } else if (*mode != bootstrapper_mode::off && *mode != bootstrapper_mode::signal) {
    wrong.add("--bootstrapper-mode " + to.mode_text +
              " is not available in this build, which has no reactor that writes to runtimes; it "
              "has off and signal");
  }
  to.mode = mode.value_or(bootstrapper_mode::off);
  const auto need = [&](const std::string& value, const char* flag) {
    if (value.empty()) wrong.add(std::string(flag) + " must not be empty");
  };
  need(to.sources.config, "--config-map-name");
  need(to.sources.manifests, "--manifests-name");
  need(to.sources.pull_secret, "--pull-secret-name");
  need(to.sources.trust_bundle, "--trust-bundle-name");
  need(to.field_manager, "--signal-field-manager");
}

}  // namespace rw::cli
