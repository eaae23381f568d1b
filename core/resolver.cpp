#include "rw/core/resolver.hpp"

#include "rw/core/text.hpp"

#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <netdb.h>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace rw::core {
namespace {

namespace asio = boost::asio;

/// RFC 3493, section 6.1. For TCP only, or each address would appear once for each socket type.
resolved ask_system(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  resolved out;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list); error != 0) {
    out.error = ::gai_strerror(error);
    return out;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  for (const auto* address = list; address != nullptr; address = address->ai_next) {
    asio::ip::tcp::endpoint endpoint;
    if (address->ai_addrlen > endpoint.capacity()) continue;
    std::copy_n(reinterpret_cast<const char*>(address->ai_addr), address->ai_addrlen,
                reinterpret_cast<char*>(endpoint.data()));
    endpoint.resize(address->ai_addrlen);
    out.found.push_back(endpoint.address());
  }
  if (out.found.empty()) out.error = "the name has no address";
  return out;
}

/// RFC 6761, section 6.3: "localhost" and the names below it are the loopback addresses, whatever a
/// file of hosts or a name server says.
bool is_localhost(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  const auto name = lower(host);
  return name == "localhost" || name.ends_with(".localhost");
}

/// A caller that waits for a look-up, and its executor.
struct asker {
  asio::any_io_executor executor;
  std::weak_ptr<lookup> pending;
};

struct lookup_queue {
  std::map<std::string, std::vector<asker>> asked;  ///< by host, including look-ups under way
  std::deque<std::string> in_turn;                  ///< hosts whose look-up has not started
  std::size_t running = 0;                          ///< threads
};

class resolver_service final : public asio::execution_context::service, public resolver {
 public:
  using key_type = resolver_service;
  static inline asio::execution_context::id id;

  explicit resolver_service(asio::execution_context& context) : service(context) {}

  std::shared_ptr<lookup> begin(asio::any_io_executor executor, const std::string& name,
                                const std::string& host) override {
    auto begun = std::make_shared<lookup>(executor);
    if (is_localhost(host)) {
      begun->found = {asio::ip::address_v4::loopback(), asio::ip::address_v6::loopback()};
      begun->done.set();
      return begun;
    }
    const std::lock_guard lock(guard_);
    reap();
    auto& in = queues_[name];
    begun->error = add(in, host, {std::move(executor), begun});
    if (begun->error.empty() && in.running < threads && !in.in_turn.empty()) {
      begun->error = start(name, in);
    }
    if (!begun->error.empty()) {
      begun->done.set();
      forget_idle(name);
    }
    return begun;
  }

  bool busy() override {
    const std::lock_guard lock(guard_);
    return !threads_.empty();
  }

  void ask(system_lookup other) override {
    const std::lock_guard lock(guard_);
    system_ = std::move(other);
  }

 private:
  using thread_list = std::list<std::thread>;

  /// Returns the error; empty if the host was queued, or its look-up is already under way.
  static std::string add(lookup_queue& in, const std::string& host, asker caller) {
    const auto known = in.asked.find(host);
    if (known == in.asked.end()) {
      if (in.in_turn.size() >= waiting) return "too many names are being looked up";
      in.in_turn.push_back(host);
      in.asked[host].push_back(std::move(caller));
      return {};
    }
    std::erase_if(known->second, [](const asker& asker) { return asker.pending.expired(); });
    known->second.push_back(std::move(caller));
    return {};
  }

  /// Ensures that a thread serves the lookup_queue. Returns the error; empty if one does.
  std::string start(const std::string& name, lookup_queue& in) {
    const auto at = threads_.emplace(threads_.end());
    ++in.running;
    try {
      *at = std::thread([this, name, at] { work(name, at); });
      return {};
    } catch (const std::system_error& error) {
      threads_.erase(at);
      if (--in.running > 0) return {};  // the other threads do the work
      in.in_turn.clear();
      in.asked.clear();
      return std::string("no thread to look names up: ") + error.what();
    }
  }

  /// Runs one thread of a lookup_queue until no look-up is left.
  void work(const std::string& name, thread_list::iterator self) {
    std::unique_lock lock(guard_);
    auto& in = queues_[name];
    while (!ended_ && !in.in_turn.empty()) {
      const auto host = std::move(in.in_turn.front());
      in.in_turn.pop_front();
      const bool wanted = std::ranges::any_of(
          in.asked[host], [](const asker& asker) { return !asker.pending.expired(); });
      resolved response;
      if (wanted) {
        const auto system = system_;
        lock.unlock();
        response = system(host);
        lock.lock();
      }
      const auto askers = std::move(in.asked.extract(host).mapped());
      lock.unlock();
      for (const auto& asker : askers) tell(asker, response);
      lock.lock();
    }
    --in.running;
    forget_idle(name);
    ended_threads_.splice(ended_threads_.end(), threads_, self);
    over_.notify_one();
  }

  static void tell(const asker& caller, const resolved& response) {
    asio::post(caller.executor, [what = caller.pending, response] {
      const auto waits = what.lock();
      if (!waits) return;
      waits->found = response.found;
      waits->error = response.error;
      waits->done.set();
    });
  }

  void forget_idle(const std::string& name) {
    const auto at = queues_.find(name);
    if (at->second.running == 0 && at->second.asked.empty()) queues_.erase(at);
  }

  /// These threads have left the guarded part, so this does not wait.
  void reap() {
    for (auto& thread : ended_threads_) thread.join();
    ended_threads_.clear();
  }

  void shutdown() override {
    std::unique_lock lock(guard_);
    ended_ = true;
    over_.wait(lock, [this] { return threads_.empty(); });
    reap();
    queues_.clear();
  }

  std::mutex guard_;
  std::condition_variable over_;  ///< signalled when a thread ends
  std::map<std::string, lookup_queue> queues_;
  thread_list threads_;
  thread_list ended_threads_;
  system_lookup system_ = ask_system;
  bool ended_ = false;
};

}  // namespace

resolver& resolver::of(const asio::any_io_executor& executor) {
  return asio::use_service<resolver_service>(asio::query(executor, asio::execution::context));
}

}  // namespace rw::core
