#pragma once

#include "reactors/listener/listener.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rw::listener {

/// The domain that a sender's runtime is known by: the annotation `skr-domain` of its Kyma. None if
/// there is no such Kyma, or it has no domain. `owner` is the event's (contract v1), or empty; then
/// the Kyma is found by the runtime id. Called on the connections' executor; must not block.
using domain_source =
    std::function<std::optional<std::string>(const object_key& owner, std::string_view runtime_id)>;

/// SAN pinning: an event is taken only if the sender's certificate has, among its subject
/// alternative names (DNS, URI, IP; RFC 5280, section 4.2.1.6), the domain that its Kyma says. So a
/// runtime cannot speak for another one by a certificate that merely carries the other's common
/// name. DNS names are compared without regard to case; wildcards do not count.
verify_function pin_san(domain_source domains);

}  // namespace rw::listener
