#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rw::k8s {

/// Encodes in Base64 (RFC 4648, section 4), with padding and without line breaks.
std::string base64_encode(std::string_view bytes);

/// Decodes Base64. Skips white space between characters, as files wrap lines. Returns nothing for
/// other text, missing padding included.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace rw::k8s
