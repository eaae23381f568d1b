#pragma once

#include "rw/core/backoff.hpp"
#include "rw/k8s/devserver/cluster.hpp"
#include "rw/k8s/devserver/identity.hpp"
#include "rw/tls/issuer.hpp"
#include "rw/tls/material.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace rw::k8s::devserver {

using cluster_map = std::map<std::string, std::shared_ptr<cluster>, std::less<>>;

/// The state of a server that outlives its process in a real control plane: certificates, users and
/// the clusters. Used by one server at a time.
class server_memory {
 public:
  server_memory(tls::issuer authority, std::shared_ptr<tls::credentials> own,
                core::random_source numbers)
      : random(std::move(numbers)), ca(std::move(authority)), credentials(std::move(own)) {}
  server_memory(const server_memory&) = delete;
  server_memory& operator=(const server_memory&) = delete;

  core::random_source random;
  const tls::issuer ca;
  const std::shared_ptr<tls::credentials> credentials;
  cluster_map clusters;
  identities users{random};
};

}  // namespace rw::k8s::devserver
