#include <iostream>
#include <rw/reactors/intake/serve.hpp>

boost::asio::awaitable<void> listen(boost::asio::any_io_executor executor,
                                    boost::asio::ip::tcp::endpoint address) {
  const auto requeue = [](rw::listener::received_event got) -> boost::asio::awaitable<void> {
    std::cout << got.runtime_id << ": " << got.event.watched.name << std::endl;
    co_return;
  };
  co_await rw::listener::serve(executor, {.address = address, .component = "my-operator"}, requeue);
}
