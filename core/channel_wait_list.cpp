#include "rw/core/channel/wait_list.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rw::core::channel_detail {
namespace {

/// Number of dead nodes a list may hold in addition to one for each live node.
constexpr std::int64_t dead_allowance = 32;

/// Wraps a node that is already counted: takes over the list's reference.
wait_node_ptr adopt(wait_node* node) noexcept {
  return wait_node_ptr(node, false);
}

}  // namespace

wait_list::~wait_list() {
  gather();
  while (pop() != nullptr) {
  }
}

void wait_list::push(const wait_node_ptr& node) noexcept {
  wait_node* const raw = wait_node_ptr(node).detach();
  wait_node* head = incoming_.load();
  do {
    raw->next_waiting_ = head;
  } while (!incoming_.compare_exchange_weak(head, raw));
}

void wait_list::stop(wait_node& node) noexcept {
  node.ask_to_stop();
  if (take_back(node)) node.op().stop();
}

bool wait_list::take_back(wait_node& node) noexcept {
  if (!node.claim()) return false;
  abandoned();
  return true;
}

/// A sweep costs the length of the list and comes after as many deaths: constant on average.
void wait_list::abandoned() noexcept {
  waiting_.fetch_sub(1);
  const std::int64_t dead = dead_.fetch_add(1) + 1;
  if (dead > dead_allowance + waiting_.load()) signal(sweep);
}

std::size_t wait_list::waiting() const noexcept {
  return static_cast<std::size_t>(std::max<std::int64_t>(0, waiting_.load()));
}

std::size_t wait_list::dead() const noexcept {
  return static_cast<std::size_t>(std::max<std::int64_t>(0, dead_.load()));
}

void wait_list::signal(std::uint64_t signals) noexcept {
  if (signals_.fetch_add(signals) != 0) return;
  // The signals left after a round were added during it. Their conditions became true before the
  // next round empties the stack.
  do {
    serve(signals);
    signals = signals_.fetch_sub(signals) - signals;
  } while (signals != 0);
}

void wait_list::serve(std::uint64_t signals) noexcept {
  gather();
  std::uint64_t left = signals % all;
  if (signals % sweep >= all) left = ~std::uint64_t{0};
  while (left != 0) {
    const wait_node_ptr node = pop();
    if (node == nullptr) break;
    if (!node->claim()) {
      dead_.fetch_sub(1);
      continue;
    }
    waiting_.fetch_sub(1);
    node->op().wake();
    --left;
  }
  if (signals >= sweep) drop_dead();
}

/// Appends the stack, newest first, to the FIFO, oldest first.
void wait_list::gather() noexcept {
  wait_node* node = incoming_.exchange(nullptr);
  if (node == nullptr) return;
  wait_node* const newest = node;
  wait_node* oldest = nullptr;
  while (node != nullptr) {
    wait_node* const next = node->next_waiting_;
    node->next_waiting_ = oldest;
    oldest = node;
    node = next;
  }
  if (first_ == nullptr) {
    first_ = oldest;
  } else {
    last_->next_waiting_ = oldest;
  }
  last_ = newest;
}

wait_node_ptr wait_list::pop() noexcept {
  wait_node* const node = first_;
  if (node == nullptr) return nullptr;
  first_ = node->next_waiting_;
  if (first_ == nullptr) last_ = nullptr;
  return adopt(node);
}

void wait_list::drop_dead() noexcept {
  wait_node* node = first_;
  first_ = nullptr;
  last_ = nullptr;
  while (node != nullptr) {
    wait_node* const next = node->next_waiting_;
    if (node->waiting()) {
      node->next_waiting_ = nullptr;
      if (last_ == nullptr) {
        first_ = node;
      } else {
        last_->next_waiting_ = node;
      }
      last_ = node;
    } else {
      adopt(node);
      dead_.fetch_sub(1);
    }
    node = next;
  }
}

boost::asio::execution_context::id wait_registry::id;

wait_registry& wait_registry::of(boost::asio::execution_context& context) {
  return boost::asio::use_service<wait_registry>(context);
}

wait_registry::~wait_registry() {
  release(true);
}

void wait_registry::add(const wait_node_ptr& node) noexcept {
  wait_node* const raw = wait_node_ptr(node).detach();
  wait_node* head = incoming_.load();
  do {
    raw->next_registered_ = head;
  } while (!incoming_.compare_exchange_weak(head, raw));
  // Each prune visits at most twice the nodes added since the prune before.
  if (added_.fetch_add(1) + 1 >= prune_after_.load() && !pruning_.exchange(true)) {
    added_.store(0);
    release(false);
    pruning_.store(false);
  }
}

void wait_registry::release(bool all) noexcept {
  wait_node* lists[] = {first_, incoming_.exchange(nullptr)};
  first_ = nullptr;
  std::size_t live = 0;
  for (wait_node* node : lists) {
    while (node != nullptr) {
      wait_node* const next = node->next_registered_;
      if (!all && node->waiting()) {
        node->next_registered_ = first_;
        first_ = node;
        ++live;
      } else {
        adopt(node);
      }
      node = next;
    }
  }
  prune_after_.store(std::max(nodes_until_prune, live));
}

void wait_registry::shutdown() {
  // Claims all before it destroys the first: that handler may own what would wake another.
  std::vector<wait_node_ptr> claimed;
  for (wait_node* list : {first_, incoming_.load()}) {
    for (wait_node* node = list; node != nullptr; node = node->next_registered_) {
      if (node->claim()) claimed.emplace_back(node);
    }
  }
  for (const wait_node_ptr& node : claimed) node->op().abandon();
  release(true);
}

}  // namespace rw::core::channel_detail
