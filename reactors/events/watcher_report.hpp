#pragma once

#include "rw/reactors/events/admission.hpp"
#include "rw/reactors/events/dispatch.hpp"
#include "rw/reactors/events/heartbeat_sender.hpp"
#include "rw/reactors/events/observation.hpp"
#include "rw/reactors/shared/managers_file.hpp"
#include "rw/tls/material.hpp"

#include <cstddef>
#include <string>

namespace rw::webhook {

/// The parts of a webhook process that a heartbeat reports on.
struct report_sources {
  const admission::webhook& webhook;
  const dispatch::dispatcher& dispatcher;
  const observation::observation* observation = nullptr;  ///< null: events come from reviews alone
  const managers_in_use* managers = nullptr;              ///< null: every manager is known
  std::string version = {};
  const tls::material* material = nullptr;       ///< in use; null: unknown
  const dispatch::delivery* delivery = nullptr;  ///< null: no losses are counted
  std::string pod = {};                          ///< its name; empty: unknown
  std::size_t abandoned = 0;  ///< events left undelivered, at the end of the process
};

heartbeats::watcher_report watcher_report_of(const report_sources& from);

}  // namespace rw::webhook
