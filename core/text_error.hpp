#pragma once

#include <string>

namespace rw::core {

/// Why an input is invalid, in words: a sentence, or the end of one that begins with the input's
/// name ("has no host"). The function that returns it says which.
struct text_error {
  std::string message;
};

}  // namespace rw::core
