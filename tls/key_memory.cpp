#include "rw/tls/key_memory.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <malloc.h>

namespace rw::tls {
namespace {

thread_local unsigned readings = 0;

void* allocate(std::size_t size, const char*, int) {
  return std::malloc(size);
}

void release(void* memory, const char*, int) {
  if (readings > 0 && memory != nullptr) OPENSSL_cleanse(memory, ::malloc_usable_size(memory));
  std::free(memory);
}

void* resize(void* memory, std::size_t size, const char* file, int line) {
  if (readings == 0 || memory == nullptr) return std::realloc(memory, size);
  void* const made = size > 0 ? std::malloc(size) : nullptr;
  if (made == nullptr && size > 0) return nullptr;
  if (made != nullptr) std::memcpy(made, memory, std::min(size, ::malloc_usable_size(memory)));
  release(memory, file, line);
  return made;
}

}  // namespace

void key_text::wipe() noexcept {
  if (!text_.empty()) OPENSSL_cleanse(text_.data(), text_.size());
}

key_reading::key_reading() noexcept {
  ++readings;
}

key_reading::~key_reading() {
  --readings;
}

bool wipe_freed_keys() noexcept {
  return CRYPTO_set_mem_functions(&allocate, &resize, &release) == 1;
}

}  // namespace rw::tls
