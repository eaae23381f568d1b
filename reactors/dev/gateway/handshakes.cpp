#include "rw/reactors/dev/gateway/handshakes.hpp"

#include <utility>

namespace rw::dev_gateway {
namespace {

core::counter& failure(core::metrics& metrics, const char* reason) {
  return core::make_counter(metrics, "rw_dev_gateway_failed_handshakes_total",
                            "Number of failed TLS handshakes with clients, by reason",
                            {{"reason", reason}});
}

class counted_stream final : public core::stream {
 public:
  counted_stream(std::unique_ptr<core::stream> inner, handshake_counters& counters)
      : inner_(std::move(inner)), counters_(counters) {}
  ~counted_stream() override {
    if (!counted_) counters_.given_up();
  }

  boost::asio::ip::tcp::socket& socket() noexcept override { return inner_->socket(); }

  core::io_result handshake() override {
    const auto step = inner_->handshake();
    if (counted_ || step.wants != core::want::nothing) return step;
    counted_ = true;
    if (step.error) {
      counters_.failed(step.error);
    } else {
      counters_.succeeded();
    }
    return step;
  }

  core::io_result read(std::span<char> into) override { return inner_->read(into); }
  core::io_result write(std::span<const char> from) override { return inner_->write(from); }
  core::io_result shutdown() override { return inner_->shutdown(); }
  std::string_view protocol() const noexcept override { return inner_->protocol(); }
  bool encrypted() const noexcept override { return inner_->encrypted(); }
  std::string_view peer_certificate() const noexcept override { return inner_->peer_certificate(); }

 private:
  const std::unique_ptr<core::stream> inner_;
  handshake_counters& counters_;
  bool counted_ = false;
};

}  // namespace

handshake_counters::handshake_counters(core::metrics& metrics)
    : succeeded_(core::make_counter(metrics, "rw_dev_gateway_handshakes_total",
                                    "Number of successful TLS handshakes with clients")),
      unfinished_(failure(metrics, "unfinished")) {
  using enum tls::handshake_failure;
  const auto at = [this](tls::handshake_failure handshake_failure) -> core::counter*& {
    return failed_.at(static_cast<std::size_t>(handshake_failure));
  };
  at(peer_untrusted) = &failure(metrics, "client_ca");
  at(peer_anonymous) = &failure(metrics, "no_certificate");
  at(refused_by_peer) = &failure(metrics, "server_refused");
  at(closed) = &failure(metrics, "closed");
  at(protocol) = &failure(metrics, "protocol");
}

void handshake_counters::failed(boost::system::error_code error) {
  failed_.at(static_cast<std::size_t>(tls::classify_handshake(error)))->Increment();
}

std::unique_ptr<core::stream> counting_transport::wrap(boost::asio::ip::tcp::socket socket) {
  auto inner = inner_->wrap(std::move(socket));
  if (!inner) return nullptr;
  return std::make_unique<counted_stream>(std::move(inner), counters_);
}

}  // namespace rw::dev_gateway
