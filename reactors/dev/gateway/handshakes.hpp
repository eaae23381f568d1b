#pragma once

#include "rw/core/metrics.hpp"
#include "rw/core/stream.hpp"
#include "rw/tls/handshake_failure.hpp"

#include <array>
#include <memory>

namespace rw::dev_gateway {

/// Counts handshakes by result.
class handshake_counters {
 public:
  explicit handshake_counters(core::metrics& metrics);

  void succeeded() { succeeded_.Increment(); }
  void failed(boost::system::error_code error);
  /// Neither: it took too long, or the server ended.
  void given_up() { unfinished_.Increment(); }

 private:
  static constexpr std::size_t reasons = 5;

  core::counter& succeeded_;
  core::counter& unfinished_;
  std::array<core::counter*, reasons> failed_{};
};

/// Counts the handshakes of another transport's streams. `use` sets that transport before the first
/// connection; the counters must outlive all streams.
class counting_transport final : public core::transport {
 public:
  explicit counting_transport(handshake_counters& counters) : counters_(counters) {}

  void use(std::unique_ptr<core::transport> inner) { inner_ = std::move(inner); }
  std::unique_ptr<core::stream> wrap(boost::asio::ip::tcp::socket socket) override;

 private:
  handshake_counters& counters_;
  std::unique_ptr<core::transport> inner_;
};

}  // namespace rw::dev_gateway
