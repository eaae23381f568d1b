#pragma once

#include "rw/core/http/message.hpp"

#include <string_view>

namespace rw::dev_gateway {

/// Returns true for a field of one connection only (RFC 9110, section 7.6.1), also if `in` names it
/// in Connection.
bool is_hop_by_hop(const http::fields& in, std::string_view name);

/// Copies a request for the backend, without hop-by-hop fields, and with `xfcc` for
/// X-Forwarded-Client-Cert.
void forward_request(const http::request& from, std::string_view xfcc, http::request& into);

/// Copies a response for the client.
void forward_answer(http::response& from, http::response& into);

}  // namespace rw::dev_gateway
