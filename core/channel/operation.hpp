#pragma once

#include "rw/core/channel/state.hpp"
#include "rw/core/channel/wait_list.hpp"
#include "rw/core/channel_error.hpp"
#include "rw/core/recycled.hpp"
#include "rw/core/requirements.hpp"

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace rw::core::channel_detail {

/// The action of an operation. `attempt` tries and returns true when the operation is over,
/// `cancel` ends it with an error, `finish` passes the result to the handler.
template <typename T>
struct send_action {
  T value;
  boost::system::error_code error{};

  bool attempt(state<T>& channel) noexcept {
    const send_status status = channel.try_send(value);
    if (status == send_status::closed) error = channel_errc::closed;
    return status != send_status::full;
  }
  static bool ready(const state<T>& channel) noexcept { return channel.may_send(); }
  static wait_list& peers(state<T>& channel) noexcept { return channel.senders(); }
  void cancel() noexcept { error = boost::asio::error::operation_aborted; }
  template <typename Handler>
  void finish(Handler& handler) {
    std::move(handler)(error);
  }
};

/// Common part of both receive actions.
template <typename T>
struct receiving {
  boost::system::error_code error{};

  bool is_over(receive_status status) noexcept {
    if (status == receive_status::closed) error = channel_errc::closed;
    return status != receive_status::empty;
  }
  static bool ready(const state<T>& channel) noexcept { return channel.may_receive(); }
  static wait_list& peers(state<T>& channel) noexcept { return channel.receivers(); }
  void cancel() noexcept { error = boost::asio::error::operation_aborted; }
};

template <typename T>
struct receive_action : receiving<T> {
  std::optional<T> item{};

  bool attempt(state<T>& channel) noexcept {
    return this->is_over(
        channel.try_receive([this](T&& taken) noexcept { item.emplace(std::move(taken)); }));
  }
  template <typename Handler>
  void finish(Handler& handler) {
    std::move(handler)(this->error, std::move(item));
  }
};

template <typename T>
struct receive_some_action : receiving<T> {
  std::vector<T>* into;
  std::size_t max;
  std::size_t taken = 0;

  bool attempt(state<T>& channel) noexcept {
    return this->is_over(channel.try_receive_some(*into, max, taken));
  }
  template <typename Handler>
  void finish(Handler& handler) {
    std::move(handler)(this->error, taken);
  }
};

/// An operation between its start and its handler.
///
/// It belongs to one party at a time: to the thread that starts it, then to the party that claims
/// the node of its suspension, then to the function posted to its executor. So it needs no atomics.
template <typename T, typename Action, typename Handler>
class operation final : public wait_op {
 public:
  using executor_type = boost::asio::associated_executor_t<Handler>;
  using allocator_type = boost::asio::associated_allocator_t<Handler, recycled_allocator<void>>;

  /// Tries at once, and completes or suspends. Never calls the handler before it returns.
  static void start(std::shared_ptr<state<T>> channel, Action action, Handler handler) {
    allocator_type allocator = allocator_of(handler);
    rebound memory(allocator);
    operation* const self = rebound_traits::allocate(memory, 1);
    ::new (static_cast<void*>(self))
        operation(std::move(channel), std::move(action), std::move(handler));
    self->go(false);
  }

  void wake() noexcept override { post_as(purpose::retry); }

  void stop() noexcept override {
    action_.cancel();
    post_as(purpose::complete);
  }

  void abandon() noexcept override {
    Action::peers(*channel_).abandoned();
    destroy();
  }

 private:
  using work_type = std::decay_t<decltype(boost::asio::prefer(
      std::declval<executor_type>(), boost::asio::execution::outstanding_work.tracked))>;
  using rebound = typename std::allocator_traits<allocator_type>::template rebind_alloc<operation>;
  using rebound_traits = std::allocator_traits<rebound>;
  enum class purpose : std::uint8_t { retry, complete };

  /// Carries the operation to its executor. If the context is destroyed before it runs, it destroys
  /// the operation and passes a wake-up that it carried to the next waiter.
  /// It has its allocator itself: bound by Asio, it would be posted, and then dispatched.
  class courier {
   public:
    using allocator_type = operation::allocator_type;

    courier(operation* op, purpose intent) noexcept
        : op_(op), intent_(intent), allocator_(allocator_of(op->handler_)) {}
    courier(courier&& other) noexcept
        : op_(std::exchange(other.op_, nullptr)),
          intent_(other.intent_),
          allocator_(other.allocator_) {}
    courier& operator=(courier&&) = delete;
    ~courier() {
      if (op_ == nullptr) return;
      const std::shared_ptr<state<T>> channel = op_->channel_;
      op_->destroy();
      if (intent_ == purpose::retry) Action::peers(*channel).notify(1);
    }

    allocator_type get_allocator() const noexcept { return allocator_; }

    void operator()() {
      operation* const op = std::exchange(op_, nullptr);
      if (intent_ == purpose::retry) {
        op->go(true);
      } else {
        op->complete();
      }
    }

   private:
    operation* op_;
    purpose intent_;
    [[no_unique_address]] allocator_type allocator_;
  };

  struct canceller {
    wait_node_ptr node;
    std::shared_ptr<state<T>> channel;

    void operator()(boost::asio::cancellation_type type) const noexcept {
      if (type == boost::asio::cancellation_type::none) return;
      Action::peers(*channel).stop(*node);
    }
  };

  operation(std::shared_ptr<state<T>> channel, Action action, Handler handler)
      : channel_(std::move(channel)),
        action_(std::move(action)),
        work_(boost::asio::prefer(boost::asio::get_associated_executor(handler),
                                  boost::asio::execution::outstanding_work.tracked)),
        handler_(std::move(handler)) {}

  static allocator_type allocator_of(const Handler& handler) {
    return boost::asio::get_associated_allocator(handler, recycled_allocator<void>());
  }

  /// Runs one round: tries, and suspends if it must wait. `on_executor`: the handler may be called
  /// right here.
  void go(bool on_executor) {
    for (;;) {
      const bool cancelled = node_ != nullptr && node_->asked_to_stop();
      bool over = action_.attempt(*channel_);
      if (!over && cancelled) {
        action_.cancel();
        over = true;
      }
      if (over) {
        if (on_executor) {
          complete();
        } else {
          post_as(purpose::complete);
        }
        return;
      }
      if (!suspend()) return;
    }
  }

  /// Returns true if the operation was taken back because its condition may have become true
  /// meanwhile. After false the operation belongs to another party and may be destroyed already.
  bool suspend() {
    const std::shared_ptr<state<T>> channel = channel_;
    wait_list& peers = Action::peers(*channel);
    const wait_node_ptr node(new wait_node(*this));
    node_ = node;
    peers.enter();
    if (auto slot = boost::asio::get_associated_cancellation_slot(handler_); slot.is_connected()) {
      slot.assign(canceller{node, channel});
    }
    register_with_context(node);
    // From here on the operation can be claimed.
    peers.push(node);
    return Action::ready(*channel) && peers.take_back(*node);
  }

  void register_with_context(const wait_node_ptr& node) {
    if constexpr (boost::asio::can_query<const work_type&,
                                         boost::asio::execution::context_t>::value) {
      wait_registry::of(boost::asio::query(work_, boost::asio::execution::context)).add(node);
    }
  }

  /// Running out of memory here would lose the operation: it ends the process (noexcept).
  void post_as(purpose intent) noexcept {
    const work_type executor = work_;  // the operation may be destroyed before post returns
    boost::asio::post(executor, courier(this, intent));
  }

  void complete() {
    if (auto slot = boost::asio::get_associated_cancellation_slot(handler_); slot.is_connected()) {
      slot.clear();
    }
    rebound memory(allocator_of(handler_));
    [[maybe_unused]] const work_type work = std::move(work_);
    Action action = std::move(action_);
    Handler handler = std::move(handler_);
    free(memory);  // before the call, so that the handler may use the same memory again
    action.finish(handler);
  }

  void destroy() noexcept {
    rebound memory(allocator_of(handler_));
    free(memory);
  }

  void free(rebound& memory) noexcept {
    std::destroy_at(this);
    rebound_traits::deallocate(memory, this, 1);
  }

  std::shared_ptr<state<T>> channel_;
  Action action_;
  work_type work_;
  Handler handler_;
  wait_node_ptr node_;  ///< of the latest suspension
};

}  // namespace rw::core::channel_detail
