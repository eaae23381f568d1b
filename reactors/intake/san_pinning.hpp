#pragma once

#include "rw/reactors/intake/listener.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rw::listener {

/// Returns the domain of a sender's runtime: the annotation `skr-domain` of its Kyma. Nothing if
/// there is no such Kyma, or it has no domain. Called on the connections' executor; must not block.
using domain_source = std::function<std::optional<std::string>(std::string_view runtime_id)>;

/// SAN pinning: accepts an event only if the sender's certificate has, among its subject
/// alternative names (DNS, URI, IP; RFC 5280, section 4.2.1.6), the domain of its Kyma. So a
/// runtime cannot impersonate another one by a certificate that merely has the other's common name.
/// DNS names are compared case-insensitively; wildcards do not count.
verify_function pin_san(domain_source domains);

}  // namespace rw::listener
