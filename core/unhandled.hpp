#pragma once

#include <exception>
#include <string_view>

namespace rw::core {

/// Takes the text of an exception that no caller will get. `may_end` is false where the process
/// must go on: while another exception unwinds the stack, or when a group is destroyed with its
/// execution context.
using unhandled_handler = void (*)(std::string_view text, bool may_end) noexcept;

/// Replaces what `unhandled` calls, for the process. Null: the default, which writes a line to
/// standard error and, if it may, ends the process by std::abort. Thread-safe.
void set_unhandled(unhandled_handler handler) noexcept;

/// Writes the line, and does not end the process: for hosts in which that is never wanted.
void log_unhandled(std::string_view text, bool may_end) noexcept;

/// Reports an exception that a task threw, and that neither a `join` nor an `on_failure` has taken.
void unhandled(const std::exception_ptr& failure, bool may_end) noexcept;

}  // namespace rw::core
