#include "rw/core/http/http2_session.hpp"

#include "rw/core/http/buffers.hpp"
#include "rw/core/http/client_error.hpp"

namespace rw::http {

core::io_result frame_output::write(nghttp2_session* session, core::stream& to,
                                    std::span<const std::shared_ptr<const send_permit>> permits) {
  constexpr std::size_t gathered = 32 * 1024;  // two TLS records
  const auto put_on = [&](std::string_view bytes) -> core::io_result {
    if (!all_open(permits)) return {.error = client_error::not_permitted};
    return to.write(bytes);
  };
  while (!empty()) {
    const auto put = put_on({bytes_.data() + begin_, bytes_.size() - begin_});
    begin_ += put.bytes;
    if (put.error || put.wants != core::want::nothing) return put;
  }
  if (begin_ > 0) {
    std::string().swap(bytes_);
    begin_ = 0;
  }
  text_buffer buffer;
  for (;;) {
    auto& bytes = buffer.text;
    bytes.clear();
    while (bytes.size() < gathered) {
      const std::uint8_t* frame = nullptr;
      const auto n = nghttp2_session_mem_send(session, &frame);
      if (n <= 0) break;
      memory_.used();
      bytes.append(view(frame, static_cast<std::size_t>(n)));
    }
    if (bytes.empty()) return {};
    for (std::size_t sent = 0; sent < bytes.size();) {
      const auto put = put_on({bytes.data() + sent, bytes.size() - sent});
      sent += put.bytes;
      if (put.error) return put;
      if (put.wants == core::want::nothing) continue;
      bytes_.assign(bytes, sent);
      return put;
    }
  }
}

}  // namespace rw::http
