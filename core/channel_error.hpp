#pragma once

#include <boost/system/error_code.hpp>

#include <cstdint>
#include <type_traits>

namespace rw::core {

/// Errors of an operation on a channel (core/channel.hpp), besides Asio's own
/// `boost::asio::error::operation_aborted` (cancelled).
enum class channel_errc : std::uint8_t {
  /// A send: the channel no longer accepts items. A receive: it is closed and every item sent has
  /// been received. Final in both cases.
  closed = 1,
};

/// The category of `channel_errc`, named "rw.channel".
const boost::system::error_category& channel_category() noexcept;

/// Found by argument-dependent lookup when a `channel_errc` becomes an `error_code`.
boost::system::error_code make_error_code(channel_errc error) noexcept;

}  // namespace rw::core

template <>
struct boost::system::is_error_code_enum<rw::core::channel_errc> : std::true_type {};
