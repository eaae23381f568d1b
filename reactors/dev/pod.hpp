#pragma once

#include "rw/k8s/objects/failure.hpp"
#include "rw/reactors/events/webhook_pipeline.hpp"
#include "rw/reactors/shared/managers_file.hpp"
#include "rw/tls/material.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/json/value.hpp>

#include <memory>
#include <optional>
#include <string>

namespace rw::dev {

/// The configuration of a pod of the Deployment `skr-webhook`, from the container's environment in
/// its template. Image, probes, volumes but for the Secret, and rights concern real pods only.
struct pod_spec {
  webhook::serve_options settings = {};  ///< its files are names of entries in the mounted Secret
  std::string pod_template = {};         ///< as text; a pod with another template is another pod
  bool has_token = false;                ///< of a ServiceAccount: it can reach the API server
};

/// Reads the spec of a pod that listens on `address`. Fails with a sentence if the template lacks a
/// required setting of the webhook.
k8s::result<pod_spec> read_pod_spec(const boost::json::value& deployment,
                                    const std::string& address);

/// Content of the mounted Secret.
struct mounted_files {
  tls::material material;
  std::optional<known_managers> managers;  ///< nothing: the file is missing, or malformed
  std::string managers_file = {};          ///< its text
};
/// Reads the mounted files. Fails with a sentence that names the missing required entry.
k8s::result<mounted_files> mounted(const pod_spec& spec, const boost::json::value& secret);

/// A pod of the watcher without its container: the webhook, in this process, on a free port. On one
/// executor.
class pod {
 public:
  /// Throws an exception that says why it can't listen.
  pod(boost::asio::any_io_executor executor, pod_spec spec, mounted_files files,
      webhook::pipeline_environment environment, admission::event_observer on_event);

  const pod_spec& spec() const noexcept { return spec_; }
  boost::asio::ip::tcp::endpoint address() const { return pipeline_.address(); }

  /// Updates the mounted Secret. Returns true if its certificates have changed.
  bool remount(mounted_files files);

  /// As webhook_pipeline.
  boost::asio::awaitable<void> run() { return pipeline_.run(); }
  void stop() { pipeline_.stop(); }
  std::size_t undelivered() const { return pipeline_.undelivered(); }

 private:
  const pod_spec spec_;
  const std::shared_ptr<tls::credentials> credentials_;
  managers_in_use managers_;
  webhook::webhook_pipeline pipeline_;
};

}  // namespace rw::dev
