#include "rw/core/http/message.hpp"

#include <boost/beast/http/status.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace rw::http {
namespace {

constexpr std::size_t kept_target = 256;  // longer ones are not kept for the next request

}  // namespace

void fields::add(std::string_view name, std::string_view value) {
  spans_.push_back({static_cast<std::uint32_t>(text_.size()),
                    static_cast<std::uint32_t>(name.size()),
                    static_cast<std::uint32_t>(value.size())});
  text_.append(name);
  text_.append(value);
}

void fields::clear() noexcept {
  constexpr std::size_t kept = 4096;  // memory of larger lists is not
  if (text_.capacity() > kept) std::string().swap(text_);
  if (spans_.capacity() * sizeof(span) > kept) std::vector<span>().swap(spans_);
  text_.clear();
  spans_.clear();
}

fields::field fields::operator[](std::size_t i) const noexcept {
  const auto& span = spans_[i];
  const std::string_view all = text_;
  return {all.substr(span.begin, span.name), all.substr(span.begin + span.name, span.value)};
}

void fields::append_lines(std::string& out) const {
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const auto field = (*this)[i];
    out += "\r\n";
    out += field.name;
    out += ": ";
    out += field.value;
  }
}

std::size_t fields::find(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    if (spans_[i].name == name.size() && iequals((*this)[i].name, name)) return i;
  }
  return spans_.size();
}

std::string_view fields::get(std::string_view name) const noexcept {
  const auto i = find(name);
  return i == spans_.size() ? std::string_view() : (*this)[i].value;
}

void request::clear() noexcept {
  method.clear();
  target.clear();
  if (target.capacity() > kept_target) target.shrink_to_fit();
  headers.clear();
  body.clear();
}

void response::clear() noexcept {
  status = 200;
  headers.clear();
  body.clear();
  source.reset();
  last = false;
}

void response::text(unsigned code, std::string_view line) {
  status = code;
  headers.add("content-type", "text/plain; charset=utf-8");
  body.assign(line);
  body += '\n';
}

void append_body(std::string& body, std::string_view bytes, std::size_t expected) {
  constexpr std::size_t first = 16 * 1024;
  const auto needed = body.size() + bytes.size() + body_padding;
  if (needed > body.capacity()) {
    const auto ahead = std::min(std::max(2 * body.capacity(), first), expected + body_padding);
    body.reserve(std::max(needed, ahead));
  }
  body.append(bytes);
}

std::string_view reason_phrase(unsigned status) noexcept {
  return boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
}

std::string_view http_date(std::chrono::system_clock::time_point time) {
  // Each thread keeps the text of the second it is in.
  thread_local std::time_t kept = -1;
  thread_local std::array<char, 40> text{};
  thread_local std::size_t size = 0;
  const auto second = std::chrono::system_clock::to_time_t(time);
  if (second != kept) {
    std::tm parts{};
    ::gmtime_r(&second, &parts);
    static constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                             "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const auto n = std::snprintf(text.data(), text.size(), "%s, %02d %s %d %02d:%02d:%02d GMT",
                                 days[parts.tm_wday], parts.tm_mday, months[parts.tm_mon],
                                 parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
    size = static_cast<std::size_t>(std::clamp(n, 0, 39));
    kept = second;
  }
  return {text.data(), size};
}

}  // namespace rw::http
