#pragma once

#include "rw/core/wake.hpp"
#include "rw/k8s/client/client.hpp"

#include <string_view>
#include <utility>

namespace rw::k8s::test {

/// Opens a watch, waits for its end, and says what that was.
inline boost::asio::awaitable<result<void>> watch_to_end(client& api, resource_type type,
                                                         selection what, watch_options options,
                                                         watch_sink& into) {
  struct until_end final : watch_sink {
    until_end(boost::asio::any_io_executor executor, watch_sink& to) : into(to), over(executor) {}
    void begin() override { into.begin(); }
    bool take(std::string_view bytes) override { return into.take(bytes); }
    void end(boost::system::error_code how) override {
      error = how;
      over.set();
    }
    watch_sink& into;
    core::wake over;
    boost::system::error_code error;
  };
  until_end sink(api.get_executor(), into);
  const auto opened =
      co_await api.open_watch(std::move(type), std::move(what), std::move(options), sink);
  if (!opened) co_return opened.error();
  if (*opened) co_await sink.over.wait();
  if (!sink.error || sink.error == http::client_error::abandoned) co_return result<void>();
  co_return failure{.code = errc_of(sink.error), .message = sink.error.message()};
}

}  // namespace rw::k8s::test
