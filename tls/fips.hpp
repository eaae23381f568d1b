#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace rw::tls {

/// How far this process is bound to FIPS 140 algorithms; the values are those of
/// `watcher_fips_mode`.
enum class fips_mode : std::uint8_t {
  off = 0,   ///< OpenSSL takes any algorithm
  on = 1,    ///< the default properties ask for fips=yes, but other providers are loaded, too
  only = 2,  ///< the FIPS provider is the only one that is loaded
};

/// Decides by whether OpenSSL's default properties ask for fips=yes, and by the names of the loaded
/// providers. `base` and `null` have no cryptographic algorithms and do not count.
fips_mode decide_fips_mode(bool fips_by_default, std::span<const std::string> providers);

/// Returns the mode of OpenSSL's default library context.
fips_mode current_fips_mode();

}  // namespace rw::tls
