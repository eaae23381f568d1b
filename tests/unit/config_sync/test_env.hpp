#pragma once

#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/devserver/faults.hpp"
#include "rw/reactors/config_sync/config_sync.hpp"
#include "rw/reactors/dev/kim.hpp"
#include "rw/reactors/dev/source_watch.hpp"
#include "rw/reactors/shared/bootstrapper_mode.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include "tests/unit/environment/simulated.hpp"
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace rw::config_sync::test {

/// A control plane with Runtimes on a simulated clock. `start` and `stop` are those of the reactor;
/// a simulated KIM is there from `start_kim` on, and otherwise the test takes marks itself.
class test_env : public rw::test::simulated {
 public:
  using value = boost::json::value;

  explicit test_env(sync_options options = {});
  ~test_env() override;

  void start();
  void start(sync_options options) {
    options_ = std::move(options);
    start();
  }
  /// Cancelled, in the middle of whatever it does.
  void stop();
  bool is_running() const noexcept { return running_ != nullptr; }

  /// The source holds `content`, whether it was there before or not.
  void put(source which, const std::string& content);
  void remove(source which);
  /// Changes nothing but metadata.
  void touch(source which, const std::string& label);

  void add_runtime(const std::string& name);  ///< without a cluster
  void remove_runtime(const std::string& name);
  value runtime(const std::string& name);
  /// Sets annotations of a Runtime, or removes those that are null.
  void annotate(const std::string& name, const value& annotations);
  /// A merge patch of its metadata.
  void change(const std::string& name, const value& metadata);

  value record();
  void remove_record();

  /// KIM, which writes what it reads of the sources to `configured`.
  void start_kim(dev::kim_options options);
  void stop_kim();
  dev::kim& kim();
  const std::string& configured(const std::string& runtime) { return configured_[runtime]; }
  /// What KIM would write now.
  std::string content();

  double marks() const { return marks("change") + marks("retry"); }
  double marks(const std::string& reason) const {
    return metric("rw_config_sync_marks_total{reason=\"" + reason + "\"}");
  }
  double count(const std::string& state) const {
    return metric("rw_config_sync_runtimes{state=\"" + state + "\"}");
  }
  /// In whole seconds, of the Runtime that has waited longest.
  double age(const std::string& state) const;

  // One Runtime.
  bool is_marked(const std::string& name) { return carries_mark(runtime(name)); }
  std::string noted(const std::string& name);
  std::string version(const std::string& name);
  /// As KIM takes a mark, without any of what follows.
  void take(const std::string& name);
  void set_state(const std::string& name, const std::string& state);

  void faults(std::function<k8s::devserver::fault(const std::string& verb, const std::string& path)>
                  decide) {
    server.faults("kcp").decide = std::move(decide);
  }

 private:
  struct running;
  struct running_kim;

  sync_options options_;
  std::unique_ptr<running> running_;
  std::unique_ptr<running_kim> kim_;
  std::map<std::string, std::string> configured_;
};

/// Two Runtimes that are older than what is changed later, and all sources.
struct landscape : test_env {
  explicit landscape(sync_options options = {}) : test_env(std::move(options)) {
    for (const auto which : all_sources) put(which, "v1");
    add_runtime("r1");
    add_runtime("r2");
    pass(std::chrono::hours(1));
  }

  void begin() {
    start();
    debounce();
  }
  /// Every change that was observed has been signalled.
  void debounce() { pass(std::chrono::seconds(15)); }
  /// And what KIM was told has ended.
  void quiet() { pass(std::chrono::minutes(3)); }
};

}  // namespace rw::config_sync::test
