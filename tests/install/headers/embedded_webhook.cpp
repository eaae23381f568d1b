#include <iostream>
#include <rw/reactors/events/serve.hpp>

boost::asio::awaitable<void> watch(boost::asio::any_io_executor executor,
                                   rw::webhook::serve_options options) {
  const auto undelivered = co_await rw::webhook::serve(executor, std::move(options));
  std::cout << undelivered << " events were not delivered" << std::endl;
}
