#pragma once

#include "rw/k8s/cache/own_writes.hpp"
#include "rw/k8s/controller/controller.hpp"
#include "rw/reactors/bootstrapper/decision.hpp"
#include "rw/reactors/bootstrapper/revision_source.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::bootstrapper {

/// What the informers say of each runtime, and which runtimes a change concerns. A runtime's key is
/// that of its Runtime and of its RuntimeBootstrapper.
///
/// Adds indexes to the informers of bootstrappers, Runtimes and kubeconfigs, and removes them when
/// it is destroyed. Single executor.
class control_plane {
 public:
  /// Enqueues the runtimes that a change of a source concerns; those that the queue does not take
  /// are added to the keys.
  using fan_out = std::function<void(std::vector<k8s::object_key>, k8s::controller::keys&)>;

  /// `from` and `time` must outlive it.
  control_plane(const sources& from, bootstrapper_sources defaults, bootstrapper_mode mode,
                bool allow_inline_manifests, core::clock& time);
  ~control_plane();
  control_plane(const control_plane&) = delete;
  control_plane& operator=(const control_plane&) = delete;

  /// Makes the controller watch the informers.
  void watch(k8s::controller& controller, bool create, fan_out spread);

  runtime_facts facts_of(const k8s::object_key& key) const;
  resource_view view_of(const k8s::object& bootstrapper) const;
  /// The Runtime in the newest state that is known; null if there is none.
  boost::json::value runtime_of(const k8s::object_key& key) const;
  /// A Runtime was written: nothing may be decided on an earlier state of it.
  void wrote_runtime(const boost::json::value& after);
  /// True if a RuntimeBootstrapper refers to a source, or names a stored content in its status, or
  /// this names something else.
  bool is_used(std::string_view name) const;
  k8s::result<std::string> kubeconfig_of(const k8s::object_key& key) const;
  /// What the pool calls a runtime's client: by its Kyma where that is known, as other reactors do,
  /// so that they share the connection.
  std::string client_name(const k8s::object_key& key) const;
  /// The Runtimes that name a Kyma: several, if their labels are wrong.
  std::vector<k8s::object_key> runtimes_of(std::string_view kyma) const;

 private:
  std::string kyma_of(const k8s::object_key& key) const;
  /// Of a source: "ConfigMap kcp-system/a".
  std::vector<k8s::object_key> users_of(std::string_view source) const;

  const sources sources_;
  const bootstrapper_sources defaults_;
  const bootstrapper_mode mode_;
  const bool allow_inline_manifests_;
  mutable k8s::own_writes runtime_writes_;
};

}  // namespace rw::bootstrapper
