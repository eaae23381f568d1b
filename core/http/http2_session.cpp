#include "core/http/http2_session.hpp"

namespace rw::http {

core::io_result frame_output::write(nghttp2_session* session, core::stream& to) {
  constexpr std::size_t gathered = 32 * 1024;  // two TLS records
  for (;;) {
    if (empty()) {
      bytes_.clear();
      begin_ = 0;
      while (bytes_.size() < gathered) {
        const std::uint8_t* bytes = nullptr;
        const auto n = nghttp2_session_mem_send(session, &bytes);
        if (n <= 0) break;
        bytes_.append(view(bytes, static_cast<std::size_t>(n)));
      }
      if (bytes_.empty()) return {};
    }
    const auto put = to.write({bytes_.data() + begin_, bytes_.size() - begin_});
    begin_ += put.bytes;
    if (put.error || put.wants != core::want::nothing) return put;
  }
}

}  // namespace rw::http
