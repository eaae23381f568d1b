#pragma once

namespace rw::cli {

/// Unmaps the code of the program and its libraries, which stays in the page cache: code still
/// needed is mapped again at its next use, at the cost of a minor fault for each window of 64 KiB.
/// Code that only the start needed (reading settings, static tables, the other commands' setup) no
/// longer counts against the process. Called when it is up.
///
/// Ignores failures.
void give_back_startup_code() noexcept;

}  // namespace rw::cli
