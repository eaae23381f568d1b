#pragma once

#include "rw/reactors/cli/doctor_report.hpp"
#include "rw/reactors/cli/settings.hpp"

#include <string>
#include <string_view>

namespace rw::cli {

/// Adds the flags by which the user has chosen KCP (--kubeconfig, --context, --as, --as-group) to
/// the commands of kubectl and runtime-watcher in a text, such as a remedy, so that they work as
/// they are printed. Commands with a --kubeconfig of their own and those for a runtime stay as they
/// are, and so do commands that grant rights: the user that was chosen is the one that lacks them.
std::string with_kcp_flags(std::string_view text, const kcp_access& given);

/// Likewise of its message and its remedy.
finding with_kcp_flags(finding of, const kcp_access& given);

}  // namespace rw::cli
