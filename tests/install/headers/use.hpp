// What each file here has: its headers compile against an installed copy, and do what their first
// sentence says.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <utility>

#define EXPECT(condition)                                                                \
  if (!(condition)) {                                                                    \
    std::cerr << __FILE__ << ':' << __LINE__ << ": not so: " << #condition << std::endl; \
    std::exit(1);                                                                        \
  }

/// Runs a coroutine to its end on a context of its own.
inline void run(boost::asio::io_context& context, boost::asio::awaitable<void> body) {
  boost::asio::co_spawn(context, std::move(body), [](std::exception_ptr failure) {
    if (failure) std::rethrow_exception(failure);
  });
  context.run();
  context.restart();
}

void use_queues();
void use_tasks();
void use_observability();
void use_http();
void use_tls();
void use_kubernetes_client();
void use_kubernetes_objects();
void use_kubernetes_cache();
void use_kubernetes_controller();
void use_devserver();
void use_listener();
void use_webhook();
