#pragma once

#include "tls/error.hpp"
#include "tls/material.hpp"
#include "tls/transport.hpp"

#include <memory>
#include <string>
#include <vector>

struct ssl_ctx_st;
struct ssl_st;

namespace rw::tls {

/// Shared by the connections that were made with it.
using context_ptr = std::shared_ptr<ssl_ctx_st>;

/// True for an IPv4 or IPv6 address in text form.
bool is_address(const std::string& name);

/// The checks that OpenSSL makes when certificate and key are put to use (security level, key
/// type).
result<void> check_usable(const material& own);

/// The context of a server with this material. Failures: missing_material, unusable_material,
/// bad_request.
result<context_ptr> make_server_context(const material& own, const server_options& options);

/// A context for clients of any material: what tells one from another stands in each connection.
result<context_ptr> make_client_context(version least);

/// Makes a new connection of such a context one of this client. Failures: as above.
result<void> prepare_client(ssl_st* connection, const material& own, const client_options& options);

}  // namespace rw::tls
