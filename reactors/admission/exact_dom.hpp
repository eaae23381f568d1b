#pragma once

#include <boost/json/storage_ptr.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <string_view>

namespace rw::admission {

/// Parses a JSON text (RFC 8259, whole and strict) into a DOM that does not round: a number becomes
/// a string of the byte 0xFF, which no string out of a JSON text contains, and the number's
/// canonical spelling. So `==` on such DOMs compares values as json_equal promises. Of duplicate
/// names the last wins.
///
/// `error` is one of boost::json::error; `error::too_deep` beyond `max_depth` levels.
boost::json::value parse_exact(std::string_view text, std::size_t max_depth,
                               boost::json::storage_ptr storage, boost::system::error_code& error);

/// The text of a JSON string in such a DOM, null for anything else.
const boost::json::string* exact_string(const boost::json::value& value) noexcept;

}  // namespace rw::admission
