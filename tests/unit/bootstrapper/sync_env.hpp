#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/reactors/bootstrapper/sync.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include "tests/unit/bootstrapper/samples.hpp"
#include "tests/unit/environment/environment.hpp"
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rw::bootstrapper_test {

namespace asio = boost::asio;

using test::bundles;

/// What is to happen to a runtime's writing requests, dry runs among them.
struct write_faults {
  int seen = 0;
  int stop_after = -1;         ///< so many are let through, then the runtime answers nothing more
  int refuse = -1;             ///< the one with this number is refused for good
  std::string only_path = {};  ///< `refuse` counts only those whose path has this
  std::vector<std::string> paths = {};
};

/// Runtimes, and what the control plane remembers of each.
class sync_env : public test::environment {
 public:
  sync_env();
  ~sync_env() override { shut_down(); }

  /// A cluster with nothing but the namespace kyma-system, unless `bare`.
  asio::awaitable<void> add(std::string name, bool bare = false);
  /// The same, synced to these sources.
  asio::awaitable<void> add_synced(std::string name, bootstrapper::render_input from);
  /// The runtime "skr": on the real API server that RW_CONFORMANCE_KUBECONFIG leads to, if it is
  /// set, cleaned of the objects of `leftovers`.
  asio::awaitable<void> add_any(std::vector<bootstrapper::render_input> leftovers);
  std::shared_ptr<k8s::client> api(const std::string& runtime) { return client(runtime); }

  /// Syncs to the first of the sources that the runtime takes.
  asio::awaitable<k8s::result<bootstrapper::sync_state>> sync(
      std::string runtime, std::vector<bootstrapper::render_input> from);
  /// The same where no request fails.
  asio::awaitable<bootstrapper::sync_state> must_sync(std::string runtime,
                                                      std::vector<bootstrapper::render_input> from);

  /// Whether the runtime has exactly these objects of one unit, and of `other` no others.
  asio::awaitable<bool> has(std::string runtime, bootstrapper::unit of,
                            bootstrapper::render_input these, bootstrapper::render_input other);
  /// The same of both units.
  asio::awaitable<bool> has_all(std::string runtime, bootstrapper::render_input these,
                                bootstrapper::render_input other);
  asio::awaitable<json::value> get(std::string runtime, std::string kind, std::string name);
  /// As Kyma Infrastructure Manager leaves it: what it copies applied, the manifests created.
  asio::awaitable<void> install_as_kim(std::string runtime, bootstrapper::render_input from);

  std::map<std::string, write_faults> faults;
  std::map<std::string, bootstrapper::sync_state> states;  ///< as the status has it
  int recorded = 0;                                        ///< writes to the control plane
  std::optional<bootstrapper::render_input> withheld;      ///< the newest, not admitted
  bootstrapper::apply_settings options;
  bootstrapper::sync_request like;  ///< of each request: `write`, `adopt`, `may_write`
};

bootstrapper::revision rendered(bootstrapper::unit of, const bootstrapper::render_input& from);
/// Both units' objects with their kinds.
struct typed_object {
  k8s::resource_type type;
  json::value object;
};
std::vector<typed_object> objects_of(bootstrapper::unit of, const bootstrapper::render_input& from);
std::vector<typed_object> objects_of(const bootstrapper::render_input& from);

}  // namespace rw::bootstrapper_test
