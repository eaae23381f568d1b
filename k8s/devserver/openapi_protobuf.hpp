#pragma once

#include <boost/json/object.hpp>

#include <string>
#include <string_view>

namespace rw::k8s::devserver {

/// The type that clients ask for, and the one that is returned: without "@", which no media type
/// has.
inline constexpr std::string_view openapi_protobuf_accepted =
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
inline constexpr std::string_view openapi_protobuf_type =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Encodes an OpenAPI v2 document as gnostic's openapi.v2.Document (github.com/google/gnostic,
/// openapiv2/OpenAPIv2.proto), as far as describe_openapi_v2 makes use of it.
std::string openapi_to_protobuf(const boost::json::object& document);

}  // namespace rw::k8s::devserver
