#pragma once

#include "rw/k8s/objects/object.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s {

/// Builds an object from pieces of a larger text, and copies them once, into the object's own
/// memory. Builds one object at a time, and reuses its memory for the next.
///
/// The pieces must stay valid until `finish`.
class object_builder {
 public:
  void clear() noexcept {
    pieces_.clear();
    size_ = 0;
  }

  /// Appends the text from `first` to `last`.
  void add(const char* first, const char* last) {
    size_ += static_cast<std::size_t>(last - first);
    if (!pieces_.empty() && pieces_.back().last == first) {
      pieces_.back().last = last;
    } else {
      pieces_.push_back({first, last});
    }
  }

  /// Returns the offset in the object of `place`, which points into the text added last.
  std::size_t offset(const char* place) const noexcept {
    return size_ - static_cast<std::size_t>(pieces_.back().last - place);
  }

  std::size_t size() const noexcept { return size_; }

  /// A field's value: an offset in the object's text if `begin` is set, or text to append after it.
  struct place {
    std::string_view value;
    std::size_t begin = elsewhere;

    static constexpr std::size_t elsewhere = ~std::size_t{0};
  };

  /// Returns the object, with `head` in place of its first character; empty if it, or a field, is
  /// larger than the limits (4 GiB, 64 KiB).
  object finish(std::string_view head, const place (&fields)[4]) const;

 private:
  struct piece {
    const char* first;
    const char* last;
  };

  std::vector<piece> pieces_;
  std::size_t size_ = 0;
};

}  // namespace rw::k8s
