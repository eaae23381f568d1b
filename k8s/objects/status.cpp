#include "rw/k8s/objects/status.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

namespace rw::k8s {
namespace {

namespace json = boost::json;

constexpr std::size_t depth_limit = 256;
constexpr std::size_t quoted_at_most = 300;
/// Longest delay that a server can ask for.
constexpr std::chrono::seconds longest_delay = std::chrono::minutes(5);

constexpr std::array<std::pair<unsigned, errc>, 13> codes{{{401, errc::unauthorized},
                                                           {403, errc::forbidden},
                                                           {404, errc::not_found},
                                                           {405, errc::method_not_allowed},
                                                           {406, errc::unsupported},
                                                           {408, errc::unavailable},
                                                           {409, errc::conflict},
                                                           {410, errc::gone},
                                                           {415, errc::unsupported},
                                                           {422, errc::invalid},
                                                           {429, errc::too_many_requests},
                                                           {502, errc::unavailable},
                                                           {503, errc::unavailable}}};

errc code_of(unsigned status, std::string_view reason) {
  if (reason == "AlreadyExists") return errc::already_exists;
  if (reason == "Expired") return errc::gone;
  const auto known = std::ranges::find(codes, status, &std::pair<unsigned, errc>::first);
  if (known != codes.end()) return known->second;
  // 500 with these reasons: the server's own time limit passed; it means "try again".
  const bool out_of_time = reason == "ServerTimeout" || reason == "Timeout";
  if (status == 504 || out_of_time) return errc::unavailable;
  if (status >= 500) return errc::server_error;
  return status >= 400 ? errc::bad_request : errc::bad_response;
}

std::chrono::seconds seconds_of(std::int64_t seconds) {
  return std::clamp(std::chrono::seconds(seconds), std::chrono::seconds(0), longest_delay);
}

/// Limit of a message: it is kept and logged, and the server may be untrusted.
constexpr std::size_t message_bytes = 4096;
constexpr std::size_t causes_at_most = 32;
constexpr std::size_t cause_bytes = 512;  // of each text of a cause

void read_causes(const json::value& status, failure& into) {
  const auto* causes = find(status, {"details", "causes"});
  if (causes == nullptr || !causes->is_array()) return;
  for (const auto& each : causes->get_array()) {
    if (!each.is_object() || into.causes.size() == causes_at_most) continue;
    const auto text = [&](std::string_view name) {
      return core::printable(core::middle_cut(find_string(each, {name}), cause_bytes));
    };
    into.causes.push_back({text("reason"), text("message"), text("field")});
  }
}

/// Fills in what the body says. Returns false if it is not a Status.
bool read_status(std::string_view body, failure& into) {
  std::string ignored;
  const auto status = parse_json(body, ignored);
  if (!status || find_string(*status, {"kind"}) != "Status") return false;
  const auto text = [&](std::string_view name) {
    return core::printable(core::middle_cut(find_string(*status, {name}), message_bytes));
  };
  into.reason = text("reason");
  into.message = text("message");
  into.retry_after = seconds_of(find_number(*status, {"details", "retryAfterSeconds"}));
  read_causes(*status, into);
  return true;
}

}  // namespace

failure failure_of(const http::response& response, const std::string& attempt,
                   std::chrono::system_clock::time_point now) {
  failure out;
  out.status = response.status;
  if (!read_status(response.body, out)) out.message = quoted_line(response.body);
  out.code = code_of(out.status, out.reason);
  // The header's is the server's own; a Status's may be older.
  const auto field = retry_after(response.headers.get("retry-after"), now);
  out.retry_after = std::max(out.retry_after, field);
  auto reason = out.message.empty() ? out.code.message() : std::move(out.message);
  if (response.status >= 300 && response.status < 400) {
    reason = "redirected to " + quoted_line(response.headers.get("location"));
  }
  const auto phrase = http::reason_phrase(out.status);
  out.message = attempt + ": " + reason + " (" + std::to_string(out.status);
  if (!phrase.empty()) out.message.append(" ").append(phrase);
  out.message += ')';
  return out;
}

std::chrono::seconds retry_after(std::string_view field,
                                 std::chrono::system_clock::time_point now) {
  if (field.empty()) return std::chrono::seconds(0);
  if (const auto seconds = core::parse_number<std::int64_t>(field)) return seconds_of(*seconds);
  std::tm parts{};
  const std::string text(field);
  if (::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts) == nullptr) {
    return std::chrono::seconds(0);
  }
  const auto time = std::chrono::system_clock::from_time_t(::timegm(&parts));
  const auto wait = std::chrono::ceil<std::chrono::seconds>(time - now);
  return std::clamp(wait, std::chrono::seconds(0), longest_delay);
}

std::optional<json::value> parse_json(std::string_view text, std::string& reason) {
  json::parse_options options;
  options.max_depth = depth_limit;
  boost::system::error_code error;
  auto value = json::parse(text, error, {}, options);
  if (!error) return value;
  reason = "the response is not JSON (" + error.message() + "): " + quoted_line(text);
  return std::nullopt;
}

std::string quoted_line(std::string_view text) {
  const auto begin = std::ranges::find_if(text, [](unsigned char c) { return c > ' '; });
  text.remove_prefix(static_cast<std::size_t>(begin - text.begin()));
  text = text.substr(0, text.find_first_of("\r\n"));
  const bool cut = text.size() > quoted_at_most;
  auto out = core::printable(text.substr(0, quoted_at_most));
  while (out.ends_with(' ')) out.pop_back();
  if (cut) out += "...";
  return out;
}

}  // namespace rw::k8s
