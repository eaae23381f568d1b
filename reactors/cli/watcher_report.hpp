#pragma once

#include "reactors/admission/admission.hpp"
#include "reactors/dispatch/dispatch.hpp"
#include "reactors/heartbeat/sender.hpp"
#include "reactors/observation/observation.hpp"
#include "reactors/shared/gap_account.hpp"
#include "reactors/shared/managers_file.hpp"
#include "tls/material.hpp"

#include <string>

namespace rw::cli {

/// The parts of a webhook process that a heartbeat reports on.
struct report_sources {
  const admission::webhook& webhook;
  const dispatch::dispatcher& dispatcher;
  const observation::observation* observation = nullptr;  ///< null: events come from reviews alone
  const managers_in_use* managers = nullptr;              ///< null: every manager is known
  std::string source = {};                  ///< the setting, reported if a watch is observed
  const tls::material* material = nullptr;  ///< in use; null: unknown
  const gap_account* gaps = nullptr;        ///< null: what was lost is counted for all managers
  std::string pod = {};                     ///< its name; empty: unknown
};

heartbeats::watcher_report watcher_report_of(const report_sources& from);

}  // namespace rw::cli
