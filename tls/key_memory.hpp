#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace rw::tls {

/// A text with a private key in it. Its memory is wiped when it goes or gets another text.
class key_text {
 public:
  key_text() = default;
  key_text(std::string text) noexcept : text_(std::move(text)) {}
  key_text(const char* text) : text_(text) {}
  key_text(const key_text&) = default;
  key_text(key_text&& other) noexcept : text_(std::exchange(other.text_, {})) {}
  ~key_text() { wipe(); }
  key_text& operator=(key_text other) noexcept {
    text_.swap(other.text_);
    return *this;
  }

  operator const std::string&() const noexcept { return text_; }
  operator std::string_view() const noexcept { return text_; }
  bool empty() const noexcept { return text_.empty(); }
  std::size_t size() const noexcept { return text_.size(); }

 private:
  void wipe() noexcept;

  std::string text_;
};

/// While one lives, what OpenSSL frees on this thread is wiped first, where `wipe_freed_keys` was
/// called. For the reading of private keys: OpenSSL 3 wipes the key itself, but not the copies of
/// its decoders (providers/implementations/encode_decode).
class key_reading {
 public:
  key_reading() noexcept;
  ~key_reading();
  key_reading(const key_reading&) = delete;
  key_reading& operator=(const key_reading&) = delete;
};

/// Puts allocation functions that heed `key_reading` in place of OpenSSL's, for the process. To be
/// called first in `main`: false if OpenSSL has allocated already, which is then left as it is. A
/// library in a host's process leaves this to the host.
bool wipe_freed_keys() noexcept;

}  // namespace rw::tls
