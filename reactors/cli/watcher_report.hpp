#pragma once

#include "reactors/admission/admission.hpp"
#include "reactors/dispatch/dispatch.hpp"
#include "reactors/heartbeat/sender.hpp"
#include "reactors/observation/observation.hpp"
#include "reactors/shared/managers_file.hpp"

#include <chrono>
#include <string>

namespace rw::cli {

/// The parts of a webhook process that a heartbeat reports on.
struct report_sources {
  const admission::webhook& webhook;
  const dispatch::dispatcher& dispatcher;
  const observation::observation* observation = nullptr;  ///< null: events come from reviews alone
  const managers_in_use* managers = nullptr;              ///< null: every manager is known
  std::string source = {};  ///< the setting, reported if a watch is observed
  std::chrono::system_clock::time_point certificate_not_after = {};
};

heartbeats::watcher_report watcher_report_of(const report_sources& from);

}  // namespace rw::cli
