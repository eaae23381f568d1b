#pragma once

#include "rw/core/http/client.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rw::k8s {

/// What is asked of an API server, as the metrics' label `verb` has it: the API's own verbs
/// (Kubernetes, "Authorization overview", request verbs), apply apart from patch.
enum class verb : std::uint8_t {
  get,
  list,
  watch,
  create,
  update,
  patch,
  apply,
  remove,
  remove_all,
  discover,
  raw,
};
inline constexpr std::size_t verbs = 11;
std::string_view label_of(verb verb) noexcept;

/// One request before it is sent: what stays the same over all attempts.
struct call {
  verb operation = verb::get;
  bool writes = false;
  std::shared_ptr<const fence> permit = {};  ///< of a writing one; null: none is needed
  std::string plural;  ///< for messages; of a discovery or raw request the target
  object_key key;      ///< for messages
  http::request wire;  ///< method, target (without the server's prefix) and body
  std::string_view accept = "application/json";
  std::string content_type;
  http::fields beside = {};  ///< of the header, beyond those of each call
  http::body_sink* sink = nullptr;
  opened_watch* opened = nullptr;      ///< where HTTP/2 puts a watch that was accepted
  std::chrono::milliseconds limit{0};  ///< of one attempt; 0: the client's
  std::chrono::milliseconds silence{0};
  call_options bounds = {};
  std::string kind;              ///< what the answer must be; empty: any object
  std::optional<failure> wrong;  ///< the arguments make no request

  /// "get configmaps default/a", for messages.
  std::string text() const;
};

// The requests of the Kubernetes API (reference, "API concepts"). `ns` is the namespace of an
// object that names none.

call get_call(const resource_type& type, object_key key, bool metadata_only, const std::string& ns);
call get_subresource_call(const resource_type& type, object_key key, std::string_view subresource,
                          const std::string& ns);
call list_call(const resource_type& type, const selection& objects, const list_options& page);
call watch_call(const resource_type& type, const selection& objects, const watch_options& options,
                http::body_sink& into);
/// A create, update, patch or apply, which sends `body` and is answered with the object.
call write_call(verb verb, std::string_view content_type, const resource_type& type, object_key key,
                const boost::json::value& body, const write_options& options,
                const std::string& ns);
call remove_call(const resource_type& type, object_key key, const delete_options& options,
                 const std::string& ns);
call remove_all_call(const resource_type& type, const selection& objects,
                     const delete_options& options);
call discover_call(std::string target);

}  // namespace rw::k8s
