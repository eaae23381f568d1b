#include "rw/k8s/devserver/call.hpp"

#include "rw/k8s/devserver/conversion.hpp"
#include "rw/k8s/devserver/scale.hpp"

#include <boost/json/serialize.hpp>

namespace rw::k8s::devserver {
namespace {

void begin(http::response& into, unsigned status) {
  into.status = status;
  into.headers.add("content-type", "application/json");
  into.headers.add("cache-control", "no-cache, private");
}

}  // namespace

void answer(http::response& into, unsigned status, const call& to, const record& record) {
  begin(into, status);
  if (to.subresource == scale_subresource) {
    auto object = record.parse();
    to_view(object, to.view);
    into.body = boost::json::serialize(scale_of(to.view, object));
    return;
  }
  append_object(into.body, record, to.view, to.show);
}

void answer(http::response& into, unsigned status, const boost::json::value& body) {
  begin(into, status);
  into.body = boost::json::serialize(body);
}

void warn(http::response& into, std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    // Omits characters that would end the header, or mean nothing to a reader.
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) quoted += c;
  }
  quoted = "299 - \"" + quoted + "\"";
  for (std::size_t i = 0; i < into.headers.size(); ++i) {
    if (into.headers[i].name == "warning" && into.headers[i].value == quoted) return;
  }
  into.headers.add("warning", quoted);
}

void answer(http::response& into, const problem& problem) {
  answer(into, problem.code, to_status(problem));
  if (problem.retry_after > 0) into.headers.add("retry-after", std::to_string(problem.retry_after));
}

}  // namespace rw::k8s::devserver
