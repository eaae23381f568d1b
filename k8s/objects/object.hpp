#pragma once

#include "rw/k8s/objects/names.hpp"

#include <boost/json/value.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

namespace rw::k8s {

/// Maximum nesting of an object's JSON. Deeper objects are rejected as invalid JSON.
inline constexpr std::size_t max_object_depth = 256;

/// The memory of one object: this, then the text and a zero, then the unescaped values of fields
/// that the text has with escapes.
class object_block {
 public:
  enum field : std::uint8_t { ns, name, uid, resource_version };

  std::string_view text() const noexcept { return {bytes(), text_size_}; }
  std::string_view get(field part) const noexcept { return {bytes() + begin_[part], size_[part]}; }

 private:
  friend class object;
  friend class object_builder;
  friend void intrusive_ptr_add_ref(const object_block* block) noexcept;
  friend void intrusive_ptr_release(const object_block* block) noexcept;

  const char* bytes() const noexcept { return reinterpret_cast<const char*>(this + 1); }

  mutable std::atomic<std::uint32_t> references_{0};
  std::uint32_t text_size_ = 0;
  std::uint32_t begin_[4] = {};
  std::uint16_t size_[4] = {};
};

inline void intrusive_ptr_add_ref(const object_block* block) noexcept {
  block->references_.fetch_add(1, std::memory_order_relaxed);  // from a reference that exists
}

void intrusive_ptr_release(const object_block* block) noexcept;

/// One Kubernetes object as a store keeps it: its JSON text, compact, with the few fields that
/// machinery reads directly. One allocation, a little larger than the text; a DOM would be five
/// times as large. A handle: copies share the object, which is immutable; thread-safe.
class object {
 public:
  object() = default;

  /// Makes an object from its whole JSON text, as a store without projection would keep it. Throws
  /// std::invalid_argument if it is not a JSON object with a metadata.name.
  static object from_text(std::string_view text);

  explicit operator bool() const noexcept { return block_ != nullptr; }

  std::string_view ns() const noexcept { return get(object_block::ns); }  ///< empty: cluster-scoped
  std::string_view name() const noexcept { return get(object_block::name); }
  std::string_view uid() const noexcept { return get(object_block::uid); }
  /// Opaque: compare it for equality only, and only with other states of the same object
  /// (Kubernetes API concepts, "Resource versions").
  std::string_view resource_version() const noexcept { return get(object_block::resource_version); }
  object_key key() const { return {std::string(ns()), std::string(name())}; }

  /// Returns the JSON text that the store's projection kept. A zero follows it.
  std::string_view text() const noexcept {
    return block_ == nullptr ? std::string_view() : block_->text();
  }
  /// Parses the text; each call parses again. Null if the handle is empty.
  boost::json::value parse() const;

  /// Returns the bytes of memory of the object, without the allocator's overhead.
  std::size_t bytes() const noexcept;

  friend bool operator==(const object& a, const object& b) noexcept { return a.block_ == b.block_; }

 private:
  friend class object_builder;

  std::string_view get(object_block::field part) const noexcept {
    return block_ == nullptr ? std::string_view() : block_->get(part);
  }

  boost::intrusive_ptr<const object_block> block_;
};

/// Returns true if both are the same state of the same object: equal uid and resourceVersion.
inline bool same_state(const object& a, const object& b) noexcept {
  return a.resource_version() == b.resource_version() && a.uid() == b.uid();
}

/// Returns true if resourceVersion `a` is older than `b`, both of the same resource. Decimal
/// numbers are compared (Kubernetes API concepts, "Resource versions"; KEP-5504); others are not
/// comparable.
bool is_older_version(std::string_view a, std::string_view b) noexcept;

}  // namespace rw::k8s
