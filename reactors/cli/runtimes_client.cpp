#include "rw/reactors/cli/runtimes_client.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/k8s/objects/url.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"
#include "rw/tls/files.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include <utility>

namespace rw::cli {

namespace asio = boost::asio;
namespace json = boost::json;

runtimes_client::runtimes_client(services& with, core::host_port address, std::string token_file)
    : address_(std::move(address)),
      token_file_(std::move(token_file)),
      plain_(core::make_plain_transport()),
      client_(with.executor,
              {.name = "manager",
               .host = address_.host,
               .port = address_.port,
               .limits = {.body_bytes = 64u << 20}},
              {*plain_, with.watchdog, with.log, with.metrics}) {}

/// Returns the error; empty: there is a response.
asio::awaitable<std::string> runtimes_client::get(const std::string* target, json::value* into) {
  http::client_slot slot;
  auto error = co_await client_.acquire(slot);
  http::request request;
  http::response response;
  request.method = "GET";
  request.target = *target;
  if (!token_file_.empty()) {
    auto token = need(tls::read_file(token_file_), "--token-file");
    while (!token.empty() && token.back() <= ' ') token.pop_back();
    request.headers.add("authorization", "Bearer " + token);
  }
  if (!error) error = co_await slot.exchange(request, response);
  const auto authority = address_.host + ":" + std::to_string(address_.port);
  if (error) co_return "no response from " + authority + ": " + error.message();
  if (response.status != 200) {
    co_return authority + " responds " + std::to_string(response.status) + ": " + response.body;
  }
  boost::system::error_code wrong;
  *into = json::parse(response.body, wrong);
  const bool good = !wrong && k8s::find(*into, {"runtimes"}) != nullptr &&
                    into->at("runtimes").is_array() && k8s::find(*into, {"states"}) != nullptr &&
                    into->at("states").is_object();
  co_return good ? "" : authority + " does not respond as a manager does";
}

asio::awaitable<runtimes_client::answer> runtimes_client::ask(std::string query) {
  answer out;
  std::string page = query;
  for (;;) {
    json::value next;
    out.error = co_await get(&page, &next);
    if (!out.error.empty()) co_return out;
    const std::string more(k8s::find_string(next, {"continue"}));
    if (out.runtimes.is_null()) {
      out.runtimes = std::move(next);
    } else {
      auto& all = out.runtimes.at("runtimes").as_array();
      for (auto& entry : next.at("runtimes").as_array()) all.push_back(std::move(entry));
    }
    if (more.empty()) break;
    page = query + "&continue=";
    k8s::append_percent_encoded(page, more, "");
  }
  out.runtimes.as_object().erase("continue");
  const auto* const leads = k8s::find(out.runtimes, {"leads"});
  if (leads != nullptr && *leads == false) {
    constexpr std::string_view known = "unknown: no leader: ";
    const auto message = read_verdict(out.runtimes).message;
    out.error = message.starts_with(known) ? message.substr(known.size()) : message;
  }
  co_return out;
}

}  // namespace rw::cli
