#pragma once

#include "k8s/objects/object.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s {

/// Puts an object together from pieces of a larger text, which are copied once, into the object's
/// own memory. One after the other; keeps what it needs for the next.
///
/// What it is given must stay until `finish`.
class object_builder {
 public:
  void clear() noexcept {
    pieces_.clear();
    size_ = 0;
  }

  /// Goes on with the text from `first` to `last`.
  void add(const char* first, const char* last) {
    size_ += static_cast<std::size_t>(last - first);
    if (!pieces_.empty() && pieces_.back().last == first) {
      pieces_.back().last = last;
    } else {
      pieces_.push_back({first, last});
    }
  }

  /// Where in the object stands what was at `place`, which lies in the text added last.
  std::size_t offset(const char* place) const noexcept {
    return size_ - static_cast<std::size_t>(pieces_.back().last - place);
  }

  std::size_t size() const noexcept { return size_; }

  /// A field's value: found in the object's text at `begin`, or else to be put behind the text.
  struct place {
    std::string_view value;
    std::size_t begin = elsewhere;

    static constexpr std::size_t elsewhere = ~std::size_t{0};
  };

  /// The object, with `head` in place of its first character; empty if it, or a field, is larger
  /// than an object can be (4 GiB, 64 KiB).
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
