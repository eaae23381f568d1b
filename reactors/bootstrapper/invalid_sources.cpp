#include "rw/reactors/bootstrapper/invalid_sources.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/status_reason.hpp"

namespace rw::bootstrapper {

void invalid_sources::note(const boost::json::value& resource) {
  auto name = k8s::key_of(resource).name;
  auto compatible = k8s::find_condition(resource, "Compatible"_reason);
  if (compatible && compatible->status == "False" && compatible->reason == "Invalid"_reason) {
    errors_.insert_or_assign(std::move(name), std::move(compatible->message));
  } else {
    forget(name);
  }
}

void invalid_sources::forget(std::string_view name) {
  const auto known = errors_.find(name);
  if (known != errors_.end()) errors_.erase(known);
}

std::vector<fleet_fault> invalid_sources::faults() const {
  std::map<std::string_view, std::vector<std::string>> names;  // by the error
  for (const auto& [name, error] : errors_) names[error].push_back(name);
  std::vector<fleet_fault> out;
  for (const auto& [error, all] : names) {
    const bool is_single = all.size() == 1;
    out.push_back({std::string(to_string(status_reason::content_rejected)),
                   std::to_string(all.size()) +
                       (is_single ? " RuntimeBootstrapper (" : " RuntimeBootstrappers (") +
                       first_of(all, all.size()) + (is_single ? ") is" : ") are") +
                       " not Compatible: Invalid: " + std::string(error),
                   "correct the source that the message names; see "
                   "deploy/configuration-of-runtimes.md"});
  }
  return out;
}

}  // namespace rw::bootstrapper
