#include "rw/reactors/cli/commands.hpp"

#include "rw/reactors/cli/certs.hpp"
#include "rw/reactors/cli/diff_app.hpp"
#include "rw/reactors/cli/doctor_app.hpp"
#include "rw/reactors/cli/doctor_pre_app.hpp"
#include "rw/reactors/cli/explain.hpp"
#include "rw/reactors/cli/listen_app.hpp"
#include "rw/reactors/cli/manager_app.hpp"
#include "rw/reactors/cli/replay_app.hpp"
#include "rw/reactors/cli/rollout_app.hpp"
#include "rw/reactors/cli/status_app.hpp"
#include "rw/reactors/cli/uninstall_app.hpp"
#include "rw/reactors/cli/waiting_app.hpp"
#include "rw/reactors/cli/webhook_app.hpp"

#include <iostream>

namespace rw::cli {
namespace {

/// Returns a command that is an app of type `App`, made with `from`.
template <class App, class Settings>
std::function<std::unique_ptr<app>(services&)> make(const Settings& from) {
  return [&from](services& with) { return std::make_unique<App>(with, from); };
}

std::unique_ptr<app> make_doctor(services& with, const doctor_settings& from) {
  if (from.pre) return std::make_unique<doctor_pre_app>(with, from);
  return std::make_unique<doctor_app>(with, from);
}

std::unique_ptr<app> make_webhook(services& with, const webhook_settings& from) {
  return make_when_valid(with,
                         {.tls = from.files,
                          .settings = "TLS_CERT, TLS_KEY, CA_CERT",
                          .admin = {from.bind_address, from.metrics_port},
                          .admin_setting = "BIND_ADDRESS"},
                         [&with, &from] { return std::make_unique<webhook_app>(with, from); });
}

/// A server with a listener, which has the settings `listening` and `metrics_address`.
template <class App, class Settings>
std::function<std::unique_ptr<app>(services&)> make_listening(const Settings& from) {
  return [&from](services& with) {
    const auto& of = from.listening;
    return make_when_valid(with,
                           {.tls = {of.tls_cert, of.tls_key, of.client_ca},
                            .settings = "--tls-cert, --tls-key, --client-ca",
                            .admin = from.metrics_address,
                            .admin_setting = "--metrics-address"},
                           [&with, &from] { return std::make_unique<App>(with, from); });
  };
}

}  // namespace

const char* const about =
    "Reports changes on a Kubernetes cluster to a control plane: `webhook` runs on the watched "
    "cluster, `listen` in the control plane. `manager` keeps everything in place from the control "
    "plane. To try all of it without a cluster there is the program runtime-watcher-dev.";

std::vector<command> commands_of(settings& to) {
  return {
      {.name = "webhook",
       .help = "Runs on a watched cluster: takes AdmissionReviews, sends WatchEvents to KCP",
       .describe = [&to](CLI::App& app) { describe_webhook(app, to.webhook); },
       .check = [&to](CLI::App& app,
                      const command_line& line) { check_webhook(app, line, to.webhook); },
       .make = [&to](services& with) { return make_webhook(with, to.webhook); },
       .serves = true,
       .aliases = {{"development", "--log-level=debug"}, {"version", "--version"}},
       .variable_prefix = ""},
      {.name = "listen",
       .help = "Runs in KCP: receives WatchEvents and prints each as a line of JSON",
       .describe = [&to](CLI::App& app) { describe_listen(app, to.listen); },
       .check = [&to](CLI::App& app, const command_line&) { check_listen(app, to.listen); },
       .make = make_listening<listen_app>(to.listen),
       .serves = true,
       .variable_prefix = ""},
      {.name = "manager",
       .help = "Runs in KCP: keeps Watchers, the webhook on every SKR and certificates in place",
       .describe = [&to](CLI::App& app) { describe_manager(app, to.manager); },
       .check = [&to](CLI::App&, const command_line&) { check_manager(to.manager); },
       .make = make_listening<manager_app>(to.manager),
       .serves = true},
      {.name = "status",
       .help = "Shows all runtimes of a manager: their states, the reasons, and since when",
       .describe = [&to](CLI::App& app) { describe_status(app, to.status); },
       .make = make<status_app>(to.status),
       .reports = true},
      {.name = "diff",
       .help = "Shows what the manager's next pass would write to a runtime, as kubectl diff does; "
               "writes nothing",
       .describe = [&to](CLI::App& app) { describe_diff(app, to.diff); },
       .check = [&to](CLI::App& app, const command_line& line) { check_diff(app, line, to.diff); },
       .make = make<diff_app>(to.diff),
       .reports = true},
      {.name = "rollout",
       .help = "Shows, plans, pauses, resumes, promotes and undoes roll-outs to all runtimes, in "
               "the words of "
               "kubectl rollout",
       .describe = [&to](CLI::App& app) { describe_rollout(app, to.rollout); },
       .make = make<rollout_app>(to.rollout),
       .reports = true},
      {.name = "uninstall",
       .help = "Takes the watcher off all runtimes, and the manager's finalizers and objects out "
               "of KCP; may be interrupted and repeated",
       .describe = [&to](CLI::App& app) { describe_uninstall(app, to.uninstall); },
       .make = make<uninstall_app>(to.uninstall),
       .reports = true},
      {.name = "doctor",
       .help =
           "Checks an installation step by step, or with --pre whether it is possible, and says "
           "what to do about each defect; changes nothing",
       .describe = [&to](CLI::App& app) { describe_doctor(app, to.doctor); },
       .check = check_runtime,
       .make = [&to](services& with) { return make_doctor(with, to.doctor); },
       .reports = true},
      {.name = "explain",
       .help = "Prints what a reason or an alert means, its usual causes, and what to do about it",
       .describe = [&to](CLI::App& app) { describe_explain(app, to.explain); },
       .act = [&to] { std::cout << explanation_text(to.explain); }},
      {.name = "replay",
       .help = "Posts recorded AdmissionReviews to a webhook, as an API server would",
       .describe = [&to](CLI::App& app) { describe_replay(app, to.replay); },
       .make = make<replay_app>(to.replay),
       .reports = true},
      {.name = "certs",
       .help = "Makes certificates, for tests and trials",
       .describe = [&to](CLI::App& app) { describe_certs(app, to.certs); },
       .act = [&to] { std::cout << make_certificates(to.certs); }},
  };
}

}  // namespace rw::cli
