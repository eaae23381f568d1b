#pragma once

#include "core/http/message.hpp"

#include <string_view>

namespace rw::dev_gateway {

/// True for a field that is about one connection only (RFC 9110, section 7.6.1), also where `in`
/// names it in Connection.
bool is_hop_by_hop(const http::fields& in, std::string_view name);

/// What goes on to the backend of a request: all but what each hop writes for itself, and with
/// `xfcc` for X-Forwarded-Client-Cert.
void forward_request(const http::request& from, std::string_view xfcc, http::request& into);

/// What goes back to the client of an answer.
void forward_answer(http::response& from, http::response& into);

}  // namespace rw::dev_gateway
