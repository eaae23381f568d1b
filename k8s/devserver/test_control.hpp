#pragma once

#include "rw/core/http/message.hpp"
#include "rw/k8s/devserver/cluster.hpp"
#include "rw/k8s/devserver/identity.hpp"
#include "rw/k8s/devserver/target.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace rw::k8s::devserver {

/// Lets tests in other processes break a cluster, by requests below its path /devserver (README.md
/// lists them). Only members of system:masters may send them.
class test_control {
 public:
  /// `disconnect` closes all connections of the server.
  explicit test_control(std::function<void()> disconnect) : disconnect_(std::move(disconnect)) {}

  static bool is_for(const target& to) { return !to.parts.empty() && to.parts[0] == "devserver"; }

  void handle(const std::shared_ptr<cluster>& in, const identity& by, const target& to,
              const http::request& from, http::response& into);

 private:
  const std::function<void()> disconnect_;
  std::map<std::weak_ptr<cluster>, cluster_backup, std::owner_less<>> backups_;
};

}  // namespace rw::k8s::devserver
