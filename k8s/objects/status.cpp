#include "rw/k8s/objects/status.hpp"

#include "rw/core/json/json_view.hpp"
#include "rw/core/text.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

namespace rw::k8s {
namespace {

using core::json_view;

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

std::string shortened(json_view of, std::size_t bytes) {
  return core::printable(core::middle_cut(of.string(), bytes));
}

void read_causes(json_view status, failure& into) {
  status.find({"details", "causes"}).elements([&](json_view each) {
    if (!each.is_object() || into.causes.size() == causes_at_most) return;
    const auto text = [&](std::string_view name) {
      return shortened(each.find(name), cause_bytes);
    };
    into.causes.push_back({text("reason"), text("message"), text("field")});
  });
}

/// Fills in what the body says. Returns false if it is not a Status.
bool read_status(const std::string& body, failure& into) {
  const core::json_document document(body, depth_limit);
  const auto status = document.root();
  if (status.find("kind").string() != "Status") return false;
  into.reason = shortened(status.find("reason"), message_bytes);
  into.message = shortened(status.find("message"), message_bytes);
  const auto delay = status.find({"details", "retryAfterSeconds"}).integer();
  into.retry_after = seconds_of(delay.value_or(0));
  read_causes(status, into);
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
  const auto time = parse_http_date(field);
  if (!time) return std::chrono::seconds(0);
  const auto wait = std::chrono::ceil<std::chrono::seconds>(*time - now);
  return std::clamp(wait, std::chrono::seconds(0), longest_delay);
}

std::optional<std::chrono::system_clock::time_point> parse_http_date(std::string_view field) {
  std::tm parts{};
  const std::string text(field);
  if (::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts) == nullptr) return {};
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
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
