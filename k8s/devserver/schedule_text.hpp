#pragma once

#include <string_view>

namespace rw::k8s::devserver {

/// Returns true for five fields (minute, hour, day of the month, month, day of the week), or for
/// "@daily" and its like, as CronJobs have them (github.com/robfig/cron, "ParseStandard").
bool is_cron_schedule(std::string_view text) noexcept;

/// Returns true for a name of the IANA time zone database; without that database, for any name.
bool is_time_zone(std::string_view name);

}  // namespace rw::k8s::devserver
