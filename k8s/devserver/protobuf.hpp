#pragma once

#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <string_view>

// Kubernetes API concepts, "Kubernetes Protobuf encoding": four bytes of magic, then a
// runtime.Unknown around the object. The fields' numbers are in builtin_table.hpp.

namespace rw::k8s::devserver {

inline constexpr std::string_view protobuf_media_type = "application/vnd.kubernetes.protobuf";

/// Returns true for kinds that are sent in protobuf.
bool has_protobuf(std::string_view api_version, std::string_view kind) noexcept;

/// Converts an object of a built-in kind, or DeleteOptions, to JSON. Fields with numbers that its
/// type does not have are skipped. Bounded in depth. 400 if the bytes are malformed, 415 if the
/// kind is unknown or is not sent in protobuf.
outcome<boost::json::value> decode_protobuf(std::string_view body);

/// Converts an object, a list or a Status in JSON. Returns false, without a change of `out`, for
/// kinds that have no protobuf.
bool append_protobuf(std::string& out, const boost::json::value& object);

/// Converts an event of a watch to a frame, with its length in front; false as append_protobuf.
bool append_protobuf_event(std::string& out, const boost::json::value& event);

}  // namespace rw::k8s::devserver
