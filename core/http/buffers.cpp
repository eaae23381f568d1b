#include "core/http/buffers.hpp"

#include <utility>
#include <vector>

namespace rw::http {
namespace {

constexpr std::size_t kept = 4;               // of each kind, by each thread
constexpr std::size_t kept_text = 64 * 1024;  // larger ones are not kept

/// What this thread has to lend.
struct lender {
  std::vector<std::unique_ptr<char[]>> rooms;
  std::vector<std::string> texts;
};

lender& here() {
  thread_local lender mine;
  return mine;
}

}  // namespace

read_buffer::read_buffer() {
  auto& rooms = here().rooms;
  if (rooms.empty()) {
    memory_ = std::make_unique_for_overwrite<char[]>(size);
    return;
  }
  memory_ = std::move(rooms.back());
  rooms.pop_back();
}

read_buffer::~read_buffer() {
  auto& rooms = here().rooms;
  if (rooms.size() < kept) rooms.push_back(std::move(memory_));
}

text_buffer::text_buffer() {
  auto& texts = here().texts;
  if (texts.empty()) return;
  text = std::move(texts.back());
  texts.pop_back();
}

text_buffer::~text_buffer() {
  auto& texts = here().texts;
  if (texts.size() >= kept || text.capacity() > kept_text) return;
  text.clear();
  texts.push_back(std::move(text));
}

}  // namespace rw::http
