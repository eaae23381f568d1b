#pragma once

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/task_group.hpp"
#include "k8s/devserver/call.hpp"
#include "k8s/devserver/writes.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// What the controllers of a real cluster do behind a write, as far as clients rely on it:
///
/// - objects whose owners are gone are deleted, at once or before their owner goes (foreground), or
///   lose the reference (orphan) (Kubernetes, "Garbage Collection");
/// - a namespace that is being deleted is emptied, then goes;
/// - a CustomResourceDefinition that is being deleted takes its objects with it.
///
/// Each cluster's gc_tasks are done in order by one task of its own, which lives only while there
/// are any. They pass admission like everybody's writes; one that fails is tried again a second
/// later.
class garbage_collector {
 public:
  struct environment {
    core::clock& clock;
    core::logger& log;
    writes& write;
    const write_planner& planner;
  };

  garbage_collector(boost::asio::any_io_executor executor, environment with);

  /// Takes note of a write.
  void follow(const std::shared_ptr<cluster>& in, const resource& of, const change& what);

  /// Goes on with what another garbage_collector had begun.
  void resume(const std::shared_ptr<cluster>& in);

  /// Ends its work; gc_tasks that are open stay so.
  boost::asio::awaitable<void> close();

 private:
  void add(const std::shared_ptr<cluster>& in, gc_task one);
  boost::asio::awaitable<void> work_off(std::shared_ptr<cluster> in);
  boost::asio::awaitable<bool> perform(std::shared_ptr<cluster> in, gc_task one);

  boost::asio::awaitable<bool> empty_namespace(std::shared_ptr<cluster> in, std::string name);
  boost::asio::awaitable<bool> empty_definition(std::shared_ptr<cluster> in, std::string name);
  boost::asio::awaitable<bool> examine_dependent(std::shared_ptr<cluster> in, object_place what);
  boost::asio::awaitable<bool> finish_owner(std::shared_ptr<cluster> in, object_place what);

  boost::asio::awaitable<bool> remove(call what, std::string propagation);
  boost::asio::awaitable<bool> edit(call what, std::function<void(boost::json::value&)> change);

  const boost::asio::any_io_executor executor_;
  const environment with_;
  core::log_limit failures_;
  core::task_group tasks_;
};

}  // namespace rw::k8s::devserver
