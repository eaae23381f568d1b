#pragma once

#include "rw/k8s/client/client_pool.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/runtime_config.hpp"
#include "rw/reactors/dev/kim.hpp"
#include "rw/reactors/dev/source_watch.hpp"
#include "rw/reactors/shared/bootstrapper_mode.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "tests/unit/environment/simulated.hpp"
#include "tests/unit/k8s/chance.hpp"
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rw::runtime_config_test {

namespace asio = boost::asio;
namespace json = boost::json;

/// Versions of the sources, which their contents are made from.
struct versions {
  int config = 1, pull_secret = 1, trust_bundle = 1, manifests = 1;

  friend auto operator<=>(const versions&, const versions&) = default;
};
std::string to_string(const versions& of);

/// The sources' contents on a runtime; 0: none, or one that no source had.
struct runtime_content {
  versions at = {0, 0, 0, 0};
  bool whole = true;       ///< the manifests' objects are exactly those of one version
  std::string parts = {};  ///< what they are, for people
};

/// A control plane and its runtimes on a simulated clock, a simulated KIM that works in its real
/// order, and the part of the manager that configures runtimes, wired as the manager does.
class land : public test::simulated {
 public:
  explicit land(std::uint64_t seed);
  ~land() override;

  /// A runtime that KIM configures.
  void add_runtime(const std::string& name);
  void remove_runtime(const std::string& name);
  /// What the runtime is asked to be from now on; by the default where there is none.
  void set_mode(const std::string& runtime, std::optional<bootstrapper_mode> to);
  bootstrapper_mode mode_of(const std::string& runtime) const;
  void annotate(const std::string& runtime, std::string_view annotation, json::value value);

  /// A manager begins, with this default; and it is cancelled in the midst of what it does.
  void begin(bootstrapper_mode by_default);
  void end();
  bool is_running() const noexcept { return manager_ != nullptr; }

  /// The source gets its content at the version that `now` has.
  void put(int versions::* which);
  void withdraw(int versions::* which);
  /// Puts something in the place of the source's content that can't be read.
  void spoil(int versions::* which);
  bool is_spoilt(int versions::* which) const;
  /// The manager has stored this pull Secret under its digest.
  bool stores_pull_secret(int version);
  /// The status names what the sources hold, pull Secrets apart, as what the runtime has.
  bool names_newest(const std::string& runtime);

  /// Why the runtime does not have what the sources hold, or is not at rest; empty: it has.
  std::string lacks(const std::string& runtime);
  /// The Deployment's pods run wherever there is one, as its controller would say.
  void set_all_ready();
  runtime_content content_of(const std::string& runtime);
  /// Pods of a Deployment that was changed start, and those of a `bad` version crash.
  void run_pods(const std::string& runtime);
  void step_wall(std::chrono::seconds by);
  json::value runtime(const std::string& name);
  json::value bootstrapper(const std::string& name);
  json::value deployment(const std::string& runtime);

  /// Of the manager that runs now.
  double count(const std::string& signal_state) const;
  /// Runtimes that wait for KIM, by that manager's metrics.
  double waiting() const;
  double marks() const;
  std::string not_ready() const;

  /// Deletes the record of signals, if it can be noticed that it was there: a Runtime has a signal.
  /// Returns false otherwise.
  bool lose_record();

  k8s::test::chance chance;
  versions now;
  int parts = 0;              ///< ConfigMaps that the manifests have of each version
  std::set<int> bad;          ///< versions of the manifests
  std::set<std::string> ill;  ///< runtimes on which all pods crash
  /// It begins, or ends, to write there.
  std::function<void(const std::string& runtime, bool begins)> on_kim = {};
  cli::runtime_config_settings settings;
  std::map<std::string, std::optional<bootstrapper_mode>> modes;  ///< none: the default
  std::unique_ptr<dev::kim> kim;

 private:
  struct manager;

  struct pods {
    std::string of = {};  ///< the Deployment's uid and generation
    bool crash = false;
  };

  json::value object_now(int versions::* which) const;
  asio::awaitable<k8s::result<void>> configure(json::value runtime);

  std::map<std::string, int> known_;  ///< versions by their contents
  std::vector<int versions::*> spoilt_;
  std::map<std::string, pods> pods_;
  cli::services services_;
  std::unique_ptr<manager> manager_;
  std::unique_ptr<k8s::client> kim_api_;
  std::unique_ptr<dev::source_watch> kim_sources_;
};

}  // namespace rw::runtime_config_test
