#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rw::k8s {

/// Base64 (RFC 4648, section 4), with padding and without line breaks.
std::string base64_encode(std::string_view bytes);

/// White space between characters is skipped, as files wrap lines. None for anything else that is
/// not base64, missing padding too.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace rw::k8s
