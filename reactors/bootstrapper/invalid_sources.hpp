#pragma once

#include "rw/reactors/shared/fleet_verdict.hpp"

#include <boost/json/value.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rw::bootstrapper {

/// The RuntimeBootstrappers whose sources in KCP are invalid: their runtimes keep the last valid
/// content, or have none. A fault of the landscape, since only a person in KCP can mend it; what a
/// runtime refuses is not, so that no tenant can make one.
///
/// Not thread-safe.
class invalid_sources {
 public:
  /// Reads the conditions of a RuntimeBootstrapper; replaces what was known of it.
  void note(const boost::json::value& resource);
  void forget(std::string_view name);
  /// One for each error.
  std::vector<fleet_fault> faults() const;

 private:
  std::map<std::string, std::string, std::less<>> errors_;  ///< by the name of the resource
};

}  // namespace rw::bootstrapper
