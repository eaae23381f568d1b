#include "rw/k8s/objects/object.hpp"

#include "rw/k8s/objects/object_builder.hpp"
#include "rw/k8s/objects/read_json.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>

namespace rw::k8s {

void intrusive_ptr_release(const object_block* block) noexcept {
  // acq_rel: the thread that frees it does so after all reads of the others.
  if (block->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    block->~object_block();
    ::operator delete(const_cast<object_block*>(block));
  }
}

boost::json::value object::parse() const {
  if (block_ == nullptr) return nullptr;
  auto value = read_json(text(), {.depth = max_object_depth, .is_counted = false});
  if (!value) throw std::logic_error("k8s::object: an object of a store " + value.error().message);
  return std::move(*value);
}

std::size_t object::bytes() const noexcept {
  if (block_ == nullptr) return 0;
  std::size_t end = block_->text_size_ + 1;
  for (std::size_t i = 0; i < std::size(block_->begin_); ++i) {
    end = std::max<std::size_t>(end, block_->begin_[i] + block_->size_[i]);
  }
  return sizeof(object_block) + end;
}

object object_builder::finish(std::string_view head, const place (&fields)[4]) const {
  const auto text_size = size_ - 1 + head.size();
  auto total = text_size + 1;
  for (const auto& field : fields) {
    if (field.value.size() > std::numeric_limits<std::uint16_t>::max()) return {};
    if (field.begin == place::elsewhere) total += field.value.size();
  }
  if (total > std::numeric_limits<std::uint32_t>::max()) return {};

  auto* const block = new (::operator new(sizeof(object_block) + total)) object_block;
  object made;
  made.block_ = block;
  block->text_size_ = static_cast<std::uint32_t>(text_size);
  auto* const begin = reinterpret_cast<char*>(block + 1);
  auto* to = std::copy(head.begin(), head.end(), begin);
  std::size_t skipped = 1;
  for (const auto& [first, last] : pieces_) {
    const auto bytes = static_cast<std::size_t>(last - first) - skipped;
    std::memcpy(to, first + skipped, bytes);
    to += bytes;
    skipped = 0;
  }
  *to++ = '\0';
  for (std::size_t i = 0; i < std::size(fields); ++i) {
    const auto& [value, at] = fields[i];
    block->size_[i] = static_cast<std::uint16_t>(value.size());
    if (at == place::elsewhere) {
      block->begin_[i] = static_cast<std::uint32_t>(to - begin);
      to = std::copy(value.begin(), value.end(), to);
    } else {
      block->begin_[i] = static_cast<std::uint32_t>(at - 1 + head.size());
    }
  }
  return made;
}

bool is_older_version(std::string_view a, std::string_view b) noexcept {
  const auto is_number = [](std::string_view version) {
    return !version.empty() && version.front() != '0' &&
           std::ranges::all_of(version, [](char c) { return c >= '0' && c <= '9'; });
  };
  if (!is_number(a) || !is_number(b)) return false;
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

}  // namespace rw::k8s
