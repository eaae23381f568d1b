#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/k8s/client/client_pool.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/doctor_pre_journal.hpp"
#include "rw/reactors/cli/doctor_pre_manifests.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <vector>

namespace rw::cli {

/// `runtime-watcher doctor --pre`: checks before an installation whether it would succeed, with the
/// credentials of whoever installs. Each object of the manifests is tried as a server-side dry run;
/// where its namespace or kind does not exist yet, the rights to write it are reviewed instead.
/// Then it checks what the manager needs in KCP, and whether the kubeconfigs of at most three
/// runtimes give the rights that the manager needs there. It writes nothing.
///
/// Exit code 0: no check failed; 3: some did. Throws where KCP does not respond (exit code 1).
class doctor_pre_app final : public app {
 public:
  doctor_pre_app(services& with, doctor_settings settings);
  ~doctor_pre_app() override;

  boost::asio::awaitable<int> run() override;

 private:
  boost::asio::awaitable<int> check_all();
  boost::asio::awaitable<std::string> check_version();
  boost::asio::awaitable<void> close();

  const doctor_settings settings_;
  const std::vector<boost::json::value> objects_;
  const planned_manager planned_;
  k8s::client kcp_;
  k8s::client_pool runtimes_;
  pre_journal journal_;
};

}  // namespace rw::cli
