#pragma once

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/watcher.hpp"
#include "rw/tls/issuer.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace rw::watcher_installer_test {

/// A valid Watcher as it was read.
inline watcher sample_watcher(std::string name = "kyma", std::string manager = "lifecycle-manager",
                              watched_field field = watched_field::spec) {
  watcher out;
  out.key = {"kcp-system", std::move(name)};
  out.manager = std::move(manager);
  out.watched = {"operator.kyma-project.io", "*", "kymas"};
  out.labels = {{"operator.kyma-project.io/watched-by", "kyma"}};
  out.field = field;
  return out;
}

/// A CA, with what it issues.
class authority {
 public:
  explicit authority(const std::string& name)
      : ca_(tls::issuer::create({.common_name = name}).value()) {}

  const std::string& pem() const { return ca_.certificate_pem(); }
  tls::key_pair issue(const std::string& name = "runtime-1",
                      std::chrono::seconds validity = std::chrono::hours(24)) const {
    return ca_
        .issue({.common_name = name,
                .dns_names = {"skr-webhook.kyma-system.svc"},
                .server_auth = true,
                .client_auth = true,
                .validity = validity})
        .value();
  }

 private:
  tls::issuer ca_;
};

}  // namespace rw::watcher_installer_test
