#include "rw/core/http/handshake_queue.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include <exception>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(handshake_queue)

namespace asio = boost::asio;
using rw::http::handshake_queue;

namespace {

void rethrow(const std::exception_ptr& failure) {
  if (failure) std::rethrow_exception(failure);
}

asio::awaitable<void> take_turn(std::shared_ptr<handshake_queue> queue, asio::io_context& context,
                                std::string from, std::vector<std::string>& order) {
  handshake_queue::place place(queue, context.get_executor(), asio::ip::make_address(from));
  co_await place.turn();
  order.push_back(from.substr(0, from.find('.')));
  place.done();
}

}  // namespace

BOOST_AUTO_TEST_CASE(handshake_queue_gives_each_address_its_turn_however_many_others_wait) {
  asio::io_context context;
  rw::core::manual_clock clock;
  const auto queue =
      std::make_shared<handshake_queue>(context.get_executor(), clock, [] { return 0.0; });
  std::vector<std::string> order;
  for (const auto* from :
       {"1.0.0.1", "1.0.0.1", "1.0.0.1", "2.0.0.1", "2.0.0.1", "2.0.0.1", "3.0.0.1", "1.0.0.1"}) {
    asio::co_spawn(context, take_turn(queue, context, from, order), rethrow);
  }
  context.run();
  const std::vector<std::string> fair{"1", "2", "3", "1", "2", "1", "2", "1"};
  BOOST_TEST(order == fair, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(handshake_queue_goes_on_when_one_that_waits_gives_up) {
  asio::io_context context;
  rw::core::manual_clock clock;
  const auto queue =
      std::make_shared<handshake_queue>(context.get_executor(), clock, [] { return 0.0; });
  std::vector<std::string> order;
  {
    handshake_queue::place leaves(queue, context.get_executor(), asio::ip::make_address("1.0.0.1"));
    asio::co_spawn(context, leaves.turn(), rethrow);
    asio::co_spawn(context, take_turn(queue, context, "2.0.0.1", order), rethrow);
    context.poll_one();  // the first one's turn begins to be passed on
    leaves.interrupt();
    context.poll();
  }
  context.restart();
  context.run();
  BOOST_TEST(order == std::vector<std::string>{"2"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
