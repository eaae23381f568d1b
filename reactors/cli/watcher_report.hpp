#pragma once

#include "rw/reactors/admission/admission.hpp"
#include "rw/reactors/dispatch/dispatch.hpp"
#include "rw/reactors/heartbeat/sender.hpp"
#include "rw/reactors/observation/observation.hpp"
#include "rw/reactors/shared/gap_account.hpp"
#include "rw/reactors/shared/managers_file.hpp"
#include "rw/tls/material.hpp"

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
