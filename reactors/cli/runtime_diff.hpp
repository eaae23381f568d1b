#pragma once

#include "rw/reactors/cli/settings.hpp"
#include "rw/reactors/runtime_controller/pass_preview.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace rw::cli {

/// Replaces the values of a Secret by digests, such as "sha256:2bb80d537b1d (6 bytes)": those of
/// `data` and `stringData`, and the copy of them that `kubectl apply` leaves in an annotation.
void hide_values(boost::json::value& secret);

/// The JSON of `/diff`: `components`, each with `writes` (`action`, `cluster`, `kind`, `name`,
/// `live`, `next`), `waits` and `error`. Beyond `most` bytes the states of objects are left out
/// (`leftOut`).
boost::json::object json_of(std::vector<pass_preview> previews, std::size_t most);

/// Formats that JSON: each write as a unified diff of YAML, then lines that begin with "# ": what
/// is not written, and why, and how many objects of each component differ. Long base64 is a digest;
/// null and empty lists are left out. `kcp`: as the user has chosen it, for the commands in these
/// lines.
std::string diff_text(const boost::json::value& diff, const kcp_access& kcp = {});

/// 1: what would be written is not known, or not all; 3: something would be; 0: nothing.
int exit_code_of(const boost::json::value& diff);

}  // namespace rw::cli
