#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/task_group.hpp"
#include "rw/k8s/devserver/call.hpp"
#include "rw/k8s/devserver/writes.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// Does what the controllers of a real cluster do after a write, as far as clients rely on it:
///
/// - objects whose owners are deleted are deleted too, at once or before their owner (foreground),
///   or lose the reference (orphan) (Kubernetes, "Garbage Collection");
/// - a namespace that is being deleted is deleted after its content;
/// - a CustomResourceDefinition that is being deleted is deleted after its objects;
/// - where that is asked for, a Deployment has the status of one whose Pods run.
///
/// One task for each cluster processes its tasks in order, and ends when there are none. Its
/// writes pass admission like all others; a failed one is retried a second later.
class garbage_collector {
 public:
  struct environment {
    core::clock& clock;
    core::logger& log;
    writes& write;
    const write_planner& planner;
  };

  garbage_collector(boost::asio::any_io_executor executor, environment with);

  /// Observes a write.
  void follow(const std::shared_ptr<cluster>& in, const resource& of, const change& change);

  /// Continues the tasks of an earlier garbage_collector.
  void resume(const std::shared_ptr<cluster>& in);

  /// Ends its tasks; open tasks stay in the cluster's list.
  boost::asio::awaitable<void> close();

 private:
  void add(const std::shared_ptr<cluster>& in, gc_task task);
  boost::asio::awaitable<void> work_off(std::shared_ptr<cluster> in);
  boost::asio::awaitable<bool> perform(std::shared_ptr<cluster> in, gc_task task);

  boost::asio::awaitable<bool> empty_namespace(std::shared_ptr<cluster> in, std::string name);
  boost::asio::awaitable<bool> empty_definition(std::shared_ptr<cluster> in, std::string name);
  boost::asio::awaitable<bool> examine_dependent(std::shared_ptr<cluster> in,
                                                 object_place object_place);
  boost::asio::awaitable<bool> finish_owner(std::shared_ptr<cluster> in, object_place object_place);
  boost::asio::awaitable<bool> run_deployment(std::shared_ptr<cluster> in, std::string path);

  boost::asio::awaitable<bool> remove(call call, std::string propagation);
  boost::asio::awaitable<bool> edit(call call, std::function<void(boost::json::value&)> change);

  const boost::asio::any_io_executor executor_;
  const environment environment_;
  core::log_limit failures_;
  core::task_group tasks_;
};

}  // namespace rw::k8s::devserver
