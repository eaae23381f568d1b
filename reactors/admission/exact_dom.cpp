#include "reactors/admission/exact_dom.hpp"

#include "reactors/admission/json_compare.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace rw::admission {
namespace {

namespace json = boost::json;

constexpr char number_mark = '\xFF';

/// Handler of Boost.JSON's parser (its names are given) that differs from the library's own in what
/// it makes of numbers.
class exact_handler {
 public:
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();

  explicit exact_handler(json::storage_ptr storage) : stack_({}, temp_, sizeof temp_) {
    stack_.reset(std::move(storage));
  }

  json::value release() { return stack_.release(); }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) { return true; }
  bool on_object_end(std::size_t n, json::error_code&) {
    stack_.push_object(n);
    return true;
  }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_array_end(std::size_t n, json::error_code&) {
    stack_.push_array(n);
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    stack_.push_chars(part);
    return true;
  }
  bool on_key(json::string_view part, std::size_t, json::error_code&) {
    stack_.push_key(part);
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    stack_.push_chars(part);
    return true;
  }
  bool on_string(json::string_view part, std::size_t, json::error_code&) {
    stack_.push_string(part);
    return true;
  }
  // The text is written in one piece, so that numbers come whole, with their spelling.
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t, json::string_view text, json::error_code&) { return number(text); }
  bool on_uint64(std::uint64_t, json::string_view text, json::error_code&) { return number(text); }
  bool on_double(double, json::string_view text, json::error_code&) { return number(text); }
  bool on_bool(bool value, json::error_code&) {
    stack_.push_bool(value);
    return true;
  }
  bool on_null(json::error_code&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  bool number(json::string_view text) {
    number_.assign(1, number_mark);
    append_canonical_number(number_, {text.data(), text.size()});
    stack_.push_string(number_);
    return true;
  }

  unsigned char temp_[4096];
  json::value_stack stack_;
  std::string number_;
};

}  // namespace

json::value parse_exact(std::string_view text, std::size_t max_depth, json::storage_ptr storage,
                        boost::system::error_code& error) {
  json::parse_options options;
  options.max_depth = max_depth;
  json::basic_parser<exact_handler> parser(options, std::move(storage));
  const auto used = parser.write_some(false, text.data(), text.size(), error);
  if (!error && used < text.size()) error = json::error::extra_data;
  if (error) return nullptr;
  return parser.handler().release();
}

const json::string* exact_string(const json::value& value) noexcept {
  const auto* text = value.if_string();
  if (text != nullptr && !text->empty() && text->front() == number_mark) return nullptr;
  return text;
}

}  // namespace rw::admission
