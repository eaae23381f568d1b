#include "use.hpp"
#include <rw/core/channel.hpp>
#include <rw/core/channel_error.hpp>
#include <rw/core/coalescing_set.hpp>
#include <rw/core/work_queue.hpp>
#include <string>
#include <vector>

namespace core = rw::core;

void use_queues() {
  boost::asio::io_context context;

  core::channel<std::string> channel(1);
  EXPECT(channel.try_send("a") == core::send_status::sent);
  EXPECT(channel.try_send("b") == core::send_status::full);
  channel.close();
  run(context, [](core::channel<std::string>* from) -> boost::asio::awaitable<void> {
    const auto first = co_await from->receive();
    EXPECT(first.has_value() && *first == "a");
    const auto none = co_await from->receive();
    EXPECT(none.has_error() && none.error() == core::channel_errc::closed);
  }(&channel));

  core::coalescing_set<std::string> keys;
  const auto now = std::chrono::steady_clock::now();
  EXPECT(keys.insert("k", now) == core::insert_result::added);
  EXPECT(keys.insert("k", now) == core::insert_result::merged);
  std::vector<core::coalescing_set<std::string>::taken> taken;
  EXPECT(keys.take(taken, 10) == 1 && taken.front().key() == "k");
  keys.done(taken.front());

  core::real_clock clock;
  core::metrics metrics;
  core::work_queue<std::string> queue(context.get_executor(), {.name = "q", .capacity = 1},
                                      {clock, metrics, core::make_random_source()});
  EXPECT(queue.add("a") == core::add_result::added);
  EXPECT(queue.add("b") == core::add_result::full);
}
