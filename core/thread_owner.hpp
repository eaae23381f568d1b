#pragma once

#include <atomic>

namespace rw::core {

/// Finds that two threads are in an object at once that only one executor may use: an io_context
/// that several threads run, without a strand. Whatever follows would be a data race, so the
/// process ends (std::abort), after a line on standard error that names the object. Always
/// compiled: a scope costs two atomic operations.
///
/// It finds the overlap of two scopes, not every call from a wrong thread.
class thread_owner {
 public:
  /// `object` is for the line: "a client"; a literal.
  explicit thread_owner(const char* object) noexcept : object_(object) {}

  /// The calling thread is in the object until the scope ends, which must be on the same thread:
  /// not across a `co_await`. Scopes of one thread may be nested.
  class [[nodiscard]] scope {
   public:
    explicit scope(const thread_owner& of) noexcept : owner_(of), outermost_(of.enter()) {}
    ~scope() {
      if (outermost_) owner_.inside_.store(nullptr, std::memory_order_release);
    }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

   private:
    const thread_owner& owner_;
    const bool outermost_;
  };

 private:
  bool enter() const noexcept;

  const char* const object_;
  mutable std::atomic<const void*> inside_{nullptr};  ///< the thread's token
};

}  // namespace rw::core
