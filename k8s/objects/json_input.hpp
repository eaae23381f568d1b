#pragma once

#include "rw/core/json/token_index.hpp"
#include "rw/core/json/token_walk.hpp"
#include "rw/k8s/objects/object.hpp"
#include "rw/k8s/objects/object_builder.hpp"

#include <string>
#include <string_view>

namespace rw::k8s {

/// Walks a string or null, which counts as empty, as an absent field does.
inline bool string_or_null(core::token_walk& walk, std::string_view& text) {
  if (walk.peek() == '"') return walk.string(text);
  text = {};
  return walk.peek() == 'n' && walk.skip();
}

/// Reads JSON texts by their tokens, without white space between them. One for each thread, because
/// its memory is only needed for the length of a call.
class json_input {
 public:
  static json_input& of_thread();

  /// Calls `read(walk)` with a walk of the compact text: what follows a value in it follows
  /// directly. Returns an empty string, or why the text was not read: it is not JSON, or `not_read`
  /// if `read` returned false.
  ///
  /// The byte after `text` must be readable, and zero or white space. What the walk returns lives
  /// until `read` returns.
  template <typename Read>
  std::string read(std::string_view text, std::string_view not_read, Read&& read) {
    const guard busy(*this);
    core::token_list tokens;
    auto flaw = prepare(text, tokens);
    if (flaw == core::json_flaw::none) {
      core::token_walk walk(tokens, max_object_depth);
      if (read(walk) && walk.at_end()) return {};
      flaw = core::flaw_of(tokens, max_object_depth);  // it ended where it met what is not wanted
    }
    return std::string(flaw == core::json_flaw::none ? not_read : core::reason(flaw));
  }

  object_builder& builder() noexcept { return builder_; }

 private:
  /// Frees, at the end, the memory that only a large text needed.
  class guard {
   public:
    explicit guard(json_input& input) noexcept : input_(input) {}
    ~guard() { input_.release(); }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;

   private:
    json_input& input_;
  };

  core::json_flaw prepare(std::string_view text, core::token_list& tokens);
  void release() noexcept;

  core::token_index index_;
  std::string compact_;
  object_builder builder_;
};

}  // namespace rw::k8s
