#pragma once

#include "rw/core/channel/index_ring.hpp"
#include "rw/core/recycled.hpp"
#include "rw/core/requirements.hpp"

#include <boost/asio/execution_context.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rw::core::channel_detail {

/// A suspended operation. Exactly one party may act on it at a time: the one that claimed its node.
/// None of the calls runs the handler before it returns.
class wait_op {
 public:
  /// Claimed by a signal: makes the operation try again on its own executor.
  virtual void wake() noexcept = 0;
  /// Claimed by a cancellation: completes the operation on its own executor.
  virtual void stop() noexcept = 0;
  /// Claimed by the shutdown of its execution context: destroys it without calling its handler.
  virtual void abandon() noexcept = 0;

 protected:
  ~wait_op() = default;
};

/// The registry releases nodes that no longer wait when so many have been added.
inline constexpr std::size_t nodes_until_prune = 64;

/// One suspension of an operation: links the operation, the wait list and each party that may end
/// the wait. Reference counted, because each of these releases it at its own time.
class wait_node : public recycled<wait_node, nodes_until_prune> {
 public:
  explicit wait_node(wait_op& op) noexcept : op_(&op) {}

  /// Tries to acquire the right to act on the operation. At most one call ever succeeds.
  bool claim() noexcept { return waiting_.load() && waiting_.exchange(false); }

  bool waiting() const noexcept { return waiting_.load(); }

  /// The operation; only the party that claimed the node may touch it.
  wait_op& op() const noexcept { return *op_; }

  /// Records a cancellation. It stays even if the claim fails, so that an operation woken at the
  /// same time does not suspend again.
  void ask_to_stop() noexcept { stop_.store(true); }
  bool asked_to_stop() const noexcept { return stop_.load(); }

  friend void intrusive_ptr_add_ref(wait_node* node) noexcept {
    node->references_.fetch_add(1, std::memory_order_relaxed);  // from a reference that exists
  }
  friend void intrusive_ptr_release(wait_node* node) noexcept {
    // acq_rel: the last owner observes all writes of the others to the node before it frees it.
    if (node->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node;
  }

 private:
  friend class wait_list;
  friend class wait_registry;

  std::atomic<bool> waiting_{true};
  std::atomic<bool> stop_{false};
  std::atomic<std::uint32_t> references_{0};
  wait_op* const op_;
  wait_node* next_waiting_ = nullptr;     ///< link of the wait list, which holds a reference
  wait_node* next_registered_ = nullptr;  ///< link of the registry, which holds a reference
};

using wait_node_ptr = boost::intrusive_ptr<wait_node>;

/// The operations that wait for one condition ("an item" or "room"), first come first woken.
///
/// Waiters push their nodes onto a stack that is only ever emptied as a whole (so it has no ABA
/// problem). The holder of the notifier role moves them into a private FIFO. The role is a counter
/// of signals still to be served: the thread that raises it from zero serves until it has brought
/// it back to zero; any other thread adds its signal and returns. So no thread waits for another.
/// If the holder is preempted, wake-ups are late but never lost, and the channel itself progresses.
///
/// No wake-up is lost. A waiter does: enter (raise `waiting_`), push, then check the condition
/// again. A notifier does: make the condition true, then read `waiting_`, then signal, then (in the
/// role) empty the stack. All of it is seq_cst: both sides write first and read the other's
/// variable second, which no weaker order keeps in sequence. Either the notifier observes the
/// waiter, or the waiter's second check observes the condition. A signal that finds the stack empty
/// is dropped for the same reason.
class wait_list {
 public:
  wait_list() = default;
  wait_list(const wait_list&) = delete;
  wait_list& operator=(const wait_list&) = delete;
  ~wait_list();

  /// Announces a waiter. Exactly one successful claim of its node, through this list, follows each
  /// call. The caller calls it before any other thread can reach the node.
  void enter() noexcept { waiting_.fetch_add(1); }

  /// Adds the node of a waiter that has entered. Another thread may claim it before the call
  /// returns.
  void push(const wait_node_ptr& node) noexcept;

  /// Wakes up to `count` waiters. Costs one load if none waits.
  void notify(std::size_t count) noexcept {
    if (waiting_.load() != 0) signal(count);
  }

  /// Wakes all.
  void notify_all() noexcept { signal(all); }

  /// Ends the wait of one waiter, for example from its cancellation slot. If the waiter was woken
  /// before, only records the cancellation in the node.
  void stop(wait_node& node) noexcept;

  /// Takes the waiter's own operation back after a push. Returns false if another party claimed it.
  bool take_back(wait_node& node) noexcept;

  /// Counts out a waiter whose node was claimed without this list: by the registry.
  void abandoned() noexcept;

  /// Estimated number of waiters.
  std::size_t waiting() const noexcept;

  /// Estimated number of nodes in the list without a waiter; at most the number of live
  /// waiters plus a constant. For tests.
  std::size_t dead() const noexcept;

 private:
  static constexpr std::uint64_t all = std::uint64_t{1} << 40;
  static constexpr std::uint64_t sweep = std::uint64_t{1} << 50;

  void signal(std::uint64_t signals) noexcept;
  void serve(std::uint64_t signals) noexcept;
  void gather() noexcept;
  void drop_dead() noexcept;
  wait_node_ptr pop() noexcept;

  alignas(line_pair) std::atomic<std::int64_t> waiting_{0};
  alignas(line_pair) std::atomic<wait_node*> incoming_{nullptr};
  /// The notifier role: number of wake-ups to serve, plus `all` and `sweep` as often as requested.
  std::atomic<std::uint64_t> signals_{0};
  std::atomic<std::int64_t> dead_{0};
  // Only in the role:
  wait_node* first_ = nullptr;
  wait_node* last_ = nullptr;
};

/// Tracks what is suspended on behalf of an execution context. The context's shutdown then destroys
/// the handlers as it destroys those of timers and sockets, and no signal wakes them afterwards.
/// Lock-free except for `of`, which takes the context's own lock on its services.
class wait_registry final : public boost::asio::execution_context::service {
 public:
  // NOLINTNEXTLINE(readability-identifier-naming): Asio's name
  using key_type = wait_registry;
  static boost::asio::execution_context::id id;

  explicit wait_registry(boost::asio::execution_context& context) : service(context) {}
  ~wait_registry() override;

  /// Returns the registry of a context; makes it at first use.
  static wait_registry& of(boost::asio::execution_context& context);

  /// Holds a node at least until it no longer waits.
  void add(const wait_node_ptr& node) noexcept;

 private:
  void shutdown() override;
  /// Releases the nodes that no longer wait, or all.
  void release(bool all) noexcept;

  std::atomic<wait_node*> incoming_{nullptr};
  std::atomic<std::size_t> added_{0};  ///< since the last prune
  std::atomic<bool> pruning_{false};   ///< the thread that sets it prunes; others do not wait
  std::atomic<std::size_t> prune_after_{nodes_until_prune};
  wait_node* first_ = nullptr;  ///< only the pruning thread uses it
};

}  // namespace rw::core::channel_detail
