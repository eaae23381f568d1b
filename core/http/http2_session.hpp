#pragma once

#include "rw/core/http/frame_memory.hpp"
#include "rw/core/http/message.hpp"
#include "rw/core/http/send_permit.hpp"
#include "rw/core/stream.hpp"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rw::http {

struct nghttp2_deleter {
  void operator()(nghttp2_session* session) const noexcept { nghttp2_session_del(session); }
  void operator()(nghttp2_session_callbacks* callbacks) const noexcept {
    nghttp2_session_callbacks_del(callbacks);
  }
  void operator()(nghttp2_option* option) const noexcept { nghttp2_option_del(option); }
};

using nghttp2_session_ptr = std::unique_ptr<nghttp2_session, nghttp2_deleter>;
using nghttp2_callbacks_ptr = std::unique_ptr<nghttp2_session_callbacks, nghttp2_deleter>;
using nghttp2_option_ptr = std::unique_ptr<nghttp2_option, nghttp2_deleter>;

inline nghttp2_callbacks_ptr make_nghttp2_callbacks() {
  nghttp2_session_callbacks* raw = nullptr;
  if (nghttp2_session_callbacks_new(&raw) != 0) throw std::bad_alloc();
  return nghttp2_callbacks_ptr(raw);
}

inline nghttp2_option_ptr make_nghttp2_option() {
  nghttp2_option* raw = nullptr;
  if (nghttp2_option_new(&raw) != 0) throw std::bad_alloc();
  return nghttp2_option_ptr(raw);
}

/// A field for nghttp2 that borrows both texts until its frame was sent.
inline nghttp2_nv borrow_field(std::string_view name, std::string_view value) noexcept {
  // nghttp2 takes pointers to non-const and does not write through them.
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

/// The fields of one message for nghttp2, borrowed until its frame was sent. As many as most
/// messages have cost no allocation.
class borrowed_fields {
 public:
  /// `name` is in lower case (RFC 9113, section 8.2).
  void add(std::string_view name, std::string_view value) { add(borrow_field(name, value)); }
  void add(const fields& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto field = borrow_field(all[i].name, all[i].value);
      // nghttp2 changes the name to lower case when it copies it.
      if (std::ranges::any_of(all[i].name, [](char c) { return c >= 'A' && c <= 'Z'; })) {
        field.flags &= static_cast<std::uint8_t>(~NGHTTP2_NV_FLAG_NO_COPY_NAME);
      }
      add(field);
    }
  }

  const nghttp2_nv* data() const noexcept { return many_.empty() ? few_.data() : many_.data(); }
  std::size_t size() const noexcept { return size_; }

 private:
  void add(const nghttp2_nv& field) {
    if (size_ < few_.size()) {
      few_[size_++] = field;
      return;
    }
    if (many_.empty()) many_.assign(few_.begin(), few_.end());
    many_.push_back(field);
    ++size_;
  }

  std::array<nghttp2_nv, 16> few_;
  std::vector<nghttp2_nv> many_;
  std::size_t size_ = 0;
};

inline std::string_view view(const std::uint8_t* bytes, std::size_t size) noexcept {
  return {reinterpret_cast<const char*>(bytes), size};
}

/// A message's body on its way out.
struct outgoing_body {
  std::string_view rest;

  /// Copies the next piece into a DATA frame; for `nghttp2_data_provider`.
  static ssize_t read(nghttp2_session*, std::int32_t, std::uint8_t* into, std::size_t room,
                      std::uint32_t* flags, nghttp2_data_source* source, void*) {
    auto& body = *static_cast<outgoing_body*>(source->ptr);
    const auto n = body.rest.copy(reinterpret_cast<char*>(into), room);
    body.rest.remove_prefix(n);
    if (body.rest.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(n);
  }
};

/// What nghttp2 tells an `Owner`, which is the session's user data. An owner that does not send
/// requests or does not care for sent frames leaves the member out.
template <class Owner>
nghttp2_callbacks_ptr callbacks_of() {
  auto callbacks = make_nghttp2_callbacks();
  auto* const c = callbacks.get();
  static constexpr auto owner = [](void* user) -> Owner& { return *static_cast<Owner*>(user); };
  if constexpr (requires(Owner& o, const nghttp2_frame& f) { o.on_begin_headers(f); }) {
    nghttp2_session_callbacks_set_on_begin_headers_callback(
        c, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
          return owner(user).on_begin_headers(*frame);
        });
  }
  if constexpr (requires(Owner& o, const nghttp2_frame& f) { o.on_frame_sent(f); }) {
    nghttp2_session_callbacks_set_on_frame_send_callback(
        c, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
          return owner(user).on_frame_sent(*frame);
        });
  }
  if constexpr (requires(Owner& o, const nghttp2_frame& f) { o.on_frame_not_sent(f); }) {
    nghttp2_session_callbacks_set_on_frame_not_send_callback(
        c, [](nghttp2_session*, const nghttp2_frame* frame, int, void* user) {
          return owner(user).on_frame_not_sent(*frame);
        });
  }
  nghttp2_session_callbacks_set_on_header_callback(
      c, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t n,
            const std::uint8_t* value, std::size_t v, std::uint8_t,
            void* user) { return owner(user).on_header(*frame, view(name, n), view(value, v)); });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      c, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
        return owner(user).on_frame(*frame);
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      c, [](nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
            std::size_t size, void* user) { return owner(user).on_data(id, view(bytes, size)); });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      c, [](nghttp2_session*, std::int32_t id, std::uint32_t code, void* user) {
        return owner(user).on_stream_close(id, code);
      });
  return callbacks;
}

/// Frames on their way from nghttp2 to the stream, gathered so that many share a write. Must
/// outlive the session, which has its memory from here.
class frame_output {
 public:
  /// Writes what the session has to say, as far as the stream takes it. With `wants` it is to be
  /// called again then; with neither that nor an error all is written.
  /// Hands nothing to the stream once one of the permits is shut, which is an error.
  core::io_result write(nghttp2_session* session, core::stream& to,
                        std::span<const std::shared_ptr<const send_permit>> permits = {});

  bool empty() const noexcept { return begin_ == bytes_.size(); }
  std::size_t held() const noexcept { return bytes_.capacity(); }

  nghttp2_mem* memory() noexcept { return memory_.interface(); }

  /// Gives back memory that only large frames need.
  void trim() noexcept {
    if (empty()) memory_.trim();
  }

 private:
  frame_memory memory_;
  std::string bytes_;  ///< what the stream did not take, from begin_ on
  std::size_t begin_ = 0;
};

}  // namespace rw::http
