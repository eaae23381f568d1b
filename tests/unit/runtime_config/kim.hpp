#pragma once

#include "k8s/controller.hpp"
#include "k8s/informer.hpp"
#include "k8s/reconciler.hpp"

#include <boost/asio/awaitable.hpp>

#include "tests/unit/runtime_config/land.hpp"
#include <memory>
#include <string>

namespace rw::runtime_config_test {

/// On each object that KIM has written: which write that was, so that each is another revision.
inline constexpr std::string_view kim_stamp = "test/written-by-kim";

/// Kyma Infrastructure Manager. It acts on Runtimes that carry the mark and on no others: reads the
/// sources when it begins, configures the runtime under its own field manager, and takes the mark
/// off at the end; each part takes its time. The runtime's history tells where it begins and ends.
class kim final : k8s::reconciler {
 public:
  explicit kim(land& in);
  ~kim() override;
  kim(const kim&) = delete;
  kim& operator=(const kim&) = delete;

  /// It does not begin with anything until it goes on.
  void hold() { held_ = true; }
  void go_on() { held_ = false; }
  int reconciles() const noexcept { return reconciles_; }

 private:
  asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key key) override;
  asio::awaitable<void> write(std::string runtime, k8s::resource_type type, json::value object);
  asio::awaitable<void> configure(std::string runtime);
  asio::awaitable<void> take_time();

  land& in_;
  std::unique_ptr<k8s::client> api_;
  k8s::informer runtimes_;
  k8s::controller core_;
  core::task_group tasks_;
  bool held_ = false;
  int reconciles_ = 0;
  int writes_ = 0;
};

}  // namespace rw::runtime_config_test
