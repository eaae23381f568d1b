#include "core/http/message.hpp"

#include <boost/beast/http/status.hpp>

#include <algorithm>

namespace rw::http {
namespace {

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

}  // namespace

bool iequals(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

void fields::add(std::string_view name, std::string_view value) {
  spans_.push_back({static_cast<std::uint32_t>(text_.size()),
                    static_cast<std::uint32_t>(name.size()),
                    static_cast<std::uint32_t>(value.size())});
  text_.append(name);
  text_.append(value);
}

void fields::clear() noexcept {
  text_.clear();
  spans_.clear();
}

fields::field fields::operator[](std::size_t i) const noexcept {
  const auto& span = spans_[i];
  const std::string_view all = text_;
  return {all.substr(span.begin, span.name), all.substr(span.begin + span.name, span.value)};
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
  headers.clear();
  body.clear();
}

void response::clear() noexcept {
  status = 200;
  headers.clear();
  body.clear();
}

void response::text(unsigned code, std::string_view line) {
  status = code;
  headers.add("content-type", "text/plain; charset=utf-8");
  body.assign(line);
  body += '\n';
}

std::string_view reason_phrase(unsigned status) noexcept {
  return boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
}

}  // namespace rw::http
