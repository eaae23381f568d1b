#pragma once

#include "core/task_group.hpp"
#include "k8s/client.hpp"
#include "k8s/devserver/server.hpp"
#include "k8s/names.hpp"
#include "reactors/bootstrapper_mode.hpp"
#include "reactors/cli/app.hpp"
#include "reactors/cli/dev/kim.hpp"
#include "reactors/source_watch.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/value.hpp>

#include "tests/unit/k8s/chance.hpp"
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rw::runtime_config_test {

namespace asio = boost::asio;
namespace json = boost::json;

extern const k8s::resource_type deployments;
extern const k8s::resource_type bundles;

/// Versions of the sources, which their contents are made from.
struct versions {
  int config = 1, pull_secret = 1, trust_bundle = 1, manifests = 1;
};

/// A control plane and its runtimes on an embedded API server whose runtimes take their time, a
/// simulated KIM, and the part of the manager that configures runtimes, wired as the manager does.
class land {
 public:
  explicit land(std::uint64_t seed);
  ~land();
  land(const land&) = delete;
  land& operator=(const land&) = delete;

  /// Definitions, namespaces, sources and these runtimes, which KIM configures; KIM runs.
  asio::awaitable<void> make(std::vector<std::string> names);

  /// A manager begins, with this default.
  void begin(bootstrapper_mode by_default);
  /// It is cancelled in the midst of what it does.
  asio::awaitable<void> end();
  /// A manager has recorded what there is: from then on each change is one.
  asio::awaitable<bool> until_recorded();
  double metric(const std::string& series) const;

  /// One of the sources gets a new version.
  asio::awaitable<void> change(int versions::* which);
  /// What the runtime is asked to be from now on; by the default where there is none.
  asio::awaitable<void> set_mode(std::string runtime, std::optional<bootstrapper_mode> to);
  bootstrapper_mode mode_of(const std::string& runtime) const;
  asio::awaitable<void> annotate(std::string runtime, json::object annotations);

  /// Why the runtime does not have what the sources hold, or is not let go of; empty: it has.
  asio::awaitable<std::string> lacks(std::string runtime);
  /// Reads until `lacks` is empty for all; what was lacking at last.
  asio::awaitable<std::string> settled();
  /// The RuntimeBootstrapper's condition becomes so.
  asio::awaitable<bool> until_told(std::string runtime, std::string condition, std::string is);
  /// The Deployment's pods run, as its controller would say.
  asio::awaitable<void> set_ready(std::string runtime);

  k8s::client& api(const std::string& cluster);
  asio::awaitable<json::value> must(asio::awaitable<k8s::result<json::value>> call);
  asio::awaitable<void> pause(core::duration by);
  std::unique_ptr<k8s::client> connect(const std::string& cluster, const std::string& name);

  k8s::test::chance chance;
  asio::io_context context{1};
  cli::services all{context.get_executor(), core::log_level::error};
  k8s::devserver::server server;
  versions now;
  std::vector<std::string> runtimes;
  std::map<std::string, std::optional<bootstrapper_mode>> modes;  ///< none: the default
  cli::dev::kim& kim() { return kim_->kim; }
  bootstrapper_mode by_default = bootstrapper_mode::signal;
  core::duration longest_write = std::chrono::milliseconds(60);  ///< to a runtime, at most

 private:
  struct manager;
  struct running_kim {
    explicit running_kim(land& in);
    std::unique_ptr<k8s::client> api;
    source_watch sources;
    cli::dev::kim kim;
  };

  asio::awaitable<k8s::result<void>> configure(json::value runtime);
  asio::awaitable<void> put_source(int versions::* which);
  asio::awaitable<void> add_runtime(std::string name);

  std::map<std::string, std::unique_ptr<k8s::client>> clients_;
  std::unique_ptr<manager> manager_;
  std::unique_ptr<running_kim> kim_;
  core::task_group tasks_{context.get_executor()};
};

/// The sources' objects at these versions.
json::value config_at(const versions& at);
json::value pull_secret_at(const versions& at);
json::value trust_bundle_at(const versions& at);
json::value manifests_at(const versions& at);

}  // namespace rw::runtime_config_test
