#pragma once

namespace rw::cli {

/// Unmaps the program's code, and that of its libraries, which stays in the page cache: what is
/// still needed is mapped again at its next use, at the cost of a minor fault for each window of 64
/// KiB. What only the start needed (reading settings, static tables, the other commands' set-up)
/// does not count against the process any more. To be called once, when it is up.
///
/// A failure does no harm and is not told.
void give_back_startup_code() noexcept;

}  // namespace rw::cli
