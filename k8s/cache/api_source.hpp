#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>
#include <utility>

namespace rw::k8s {

/// What an informer asks of an API server: the part of k8s::client that it uses. Embedders and
/// tests may give another one. On one executor; calls are as those of the client, but make one
/// attempt: the informer has the backoff. A watch keeps to its options' timeout and silence, and
/// its sink is told of the answer's head by `begin`. A source may return from `open_watch` at the
/// watch's end only, with a null result.
class api_source {
 public:
  virtual ~api_source() = default;

  virtual boost::asio::any_io_executor get_executor() const noexcept = 0;
  virtual boost::asio::awaitable<result<std::pair<unsigned, unsigned>>> server_version() = 0;
  virtual boost::asio::awaitable<result<std::string>> list_text(resource_type type,
                                                                selection objects,
                                                                list_options page) = 0;
  virtual boost::asio::awaitable<result<opened_watch>> open_watch(resource_type type,
                                                                  selection objects,
                                                                  watch_options options,
                                                                  watch_sink& into) = 0;
  /// False once a streaming list of the server has come to nothing: it is asked for no other.
  virtual bool streams_lists() const noexcept { return true; }
  virtual void rule_out_streaming_lists() noexcept {}
};

/// A client as a source; it must outlive the result.
std::shared_ptr<api_source> source_of(client& api);

}  // namespace rw::k8s
