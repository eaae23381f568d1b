#pragma once

#include "k8s/objects/failure.hpp"
#include "reactors/cli/webhook_pipeline.hpp"
#include "reactors/shared/managers_file.hpp"
#include "tls/material.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/json/value.hpp>

#include <memory>
#include <optional>
#include <string>

namespace rw::dev {

/// What a pod of the Deployment `skr-webhook` is to run, as far as its template says it to the
/// program: the container's environment. Image, probes and rights are those of real pods.
struct pod_spec {
  cli::webhook_settings settings = {};  ///< its files are names of entries in the mounted Secret
  std::string pod_template = {};        ///< the whole of it, as text: another one is another pod
};

/// Of a pod that listens on `address`. Fails with a sentence where the template lacks what the
/// webhook can't do without.
k8s::result<pod_spec> read_pod_spec(const boost::json::value& deployment,
                                    const std::string& address);

/// What the mounted Secret gives the pod.
struct mounted_files {
  tls::material material;
  std::optional<known_managers> managers;  ///< none: the file is not there, or malformed
};
/// Fails with a sentence that names the entry which the pod cannot do without.
k8s::result<mounted_files> mounted(const pod_spec& spec, const boost::json::value& secret);

/// A pod of the watcher without its container: the webhook, in this process, on a port that was
/// free. On one executor.
class pod {
 public:
  /// Throws what says why it can't listen.
  pod(boost::asio::any_io_executor executor, pod_spec spec, mounted_files files,
      cli::pipeline_environment environment, admission::event_observer on_event);

  const pod_spec& spec() const noexcept { return spec_; }
  boost::asio::ip::tcp::endpoint address() const { return pipeline_.address(); }

  /// The mounted Secret may have changed. True if its certificates had.
  bool remount(mounted_files files);

  /// As webhook_pipeline.
  boost::asio::awaitable<void> run() { return pipeline_.run(); }
  void stop() { pipeline_.stop(); }
  std::size_t undelivered() const { return pipeline_.undelivered(); }

 private:
  const pod_spec spec_;
  const std::shared_ptr<tls::credentials> credentials_;
  managers_in_use managers_;
  cli::webhook_pipeline pipeline_;
};

}  // namespace rw::dev
