#pragma once

#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <span>
#include <string_view>

namespace rw::k8s::devserver {

/// The media type that `decode_protobuf` reads.
inline constexpr std::string_view protobuf_media_type = "application/vnd.kubernetes.protobuf";

/// Converts an object of a built-in kind as `kubectl create KIND` sends it, or DeleteOptions as a
/// client of built-in kinds does, to JSON (Kubernetes API concepts, "Kubernetes Protobuf encoding":
/// four bytes of magic, then a runtime.Unknown around the object). Bounded in depth.
///
/// Only the kinds and fields of protobuf_kinds.cpp are known. Anything else is rejected with 415
/// and a message, and never dropped: clients can send JSON.
outcome<boost::json::value> decode_protobuf(std::string_view body);

enum class wire_kind : std::uint8_t {
  text,
  bytes,  ///< base64 in JSON
  boolean,
  number,
  message,
  text_map,
  bytes_map,
  quantity_map,
  int_or_string,
  ignored,  ///< set by the server, such as a status or a timestamp
};

struct wire_message;

/// One field of a message.
struct wire_field {
  unsigned number;
  std::string_view name;
  wire_kind what;
  bool repeated = false;
  bool keep_zero = false;  ///< in Go a pointer, or required: zero and empty are kept
  const wire_message* message = nullptr;
};

struct wire_message {
  std::string_view name;
  std::span<const wire_field> fields;
};

/// Returns the message of a built-in kind, such as "apps/v1", "Deployment"; null if it is unknown.
const wire_message* find_wire_message(std::string_view api_version, std::string_view kind);

}  // namespace rw::k8s::devserver
