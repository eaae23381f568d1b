#include "rw/k8s/objects/failure.hpp"

#include <boost/system/system_error.hpp>

#include <array>

namespace rw::k8s {
namespace {

struct texts {
  std::string_view label;
  std::string_view message;
};

/// In the order of `errc`, from 1 on.
constexpr std::array all_texts{
    texts{"unreachable", "the API server cannot be reached"},
    texts{"timed_out", "the API server did not respond in time"},
    texts{"bad_answer", "the API server's response cannot be understood"},
    texts{"too_large", "the API server's response is too large"},
    texts{"bad_request", "the API server rejects the request as malformed"},
    texts{"unauthorized", "the API server does not know the user"},
    texts{"forbidden", "the API server does not allow it"},
    texts{"not_found", "not found"},
    texts{"method_not_allowed", "the resource does not support it"},
    texts{"already_exists", "already exists"},
    texts{"conflict", "in conflict with another change"},
    texts{"gone", "the resource version is too old"},
    texts{"unsupported", "the API server does not know the format"},
    texts{"invalid", "the object is invalid"},
    texts{"too_many_requests", "too many requests"},
    texts{"server_error", "the API server failed"},
    texts{"unavailable", "the API server is unavailable"},
    texts{"fenced", "this process may no longer write"},
    texts{"not_configured", "no credentials"},
    texts{"address_refused", "the API server is this machine or its link"},
    texts{"shut_down", "the client is being closed"},
};

texts texts_of(int value) {
  const auto at = static_cast<std::size_t>(value) - 1;
  return at < all_texts.size() ? all_texts[at] : texts{"unknown", "unknown error"};
}

class category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "kubernetes api"; }
  std::string message(int value) const override { return std::string(texts_of(value).message); }
};

}  // namespace

const boost::system::error_category& api_category() noexcept {
  static const category instance;
  return instance;
}

boost::system::error_code make_error_code(errc e) noexcept {
  return {static_cast<int>(e), api_category()};
}

std::string_view label_of(const failure& f) noexcept {
  return texts_of(f.code.value()).label;
}

bool is_permanent(const failure& error) noexcept {
  // What does not fit the schema is refused with 500 by server-side apply, up to the newest version
  // (k8s.io/apimachinery/pkg/util/managedfields, structuredmerge.go).
  const bool unfit = error.status == 500 && error.message.find(
                                                "failed to create typed patch "
                                                "object") != std::string::npos;
  return unfit || error.is(errc::bad_request) || error.is(errc::invalid) ||
         error.is(errc::forbidden) || error.is(errc::unsupported) ||
         error.is(errc::method_not_allowed) || error.is(errc::too_large) || error.status == 413;
}

bool is_access_rejected(const failure& error) noexcept {
  return error.is(errc::unauthorized) || error.is(errc::not_configured) ||
         error.is(errc::address_refused);
}

void throw_exception_from_error(const failure& f, const boost::source_location&) {
  throw boost::system::system_error(f.code, f.message);
}

}  // namespace rw::k8s
