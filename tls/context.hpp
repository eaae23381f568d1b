#pragma once

#include "rw/tls/error.hpp"
#include "rw/tls/material.hpp"
#include "rw/tls/transport.hpp"

#include <memory>
#include <string>
#include <vector>

struct ssl_ctx_st;
struct ssl_st;

namespace rw::tls {

/// An OpenSSL context, shared by its connections.
using context_ptr = std::shared_ptr<ssl_ctx_st>;

bool is_address(const std::string& name);

/// Makes OpenSSL's checks of a certificate and key in use (security level, key type).
result<void> check_usable(const material& own);

/// Makes the context of a server with this material. Failures: missing_material, unusable_material,
/// bad_request.
result<context_ptr> make_server_context(const material& own, const server_options& options);

/// Makes a context for clients of any material: each connection holds what is its client's own.
result<context_ptr> make_client_context(version least);

/// Configures a new connection of a client context for one client. Failures: as above.
result<void> prepare_client(ssl_st* connection, const material& own, const client_options& options);

}  // namespace rw::tls
