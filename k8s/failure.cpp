#include "k8s/failure.hpp"

#include <boost/system/system_error.hpp>

namespace rw::k8s {
namespace {

class category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "kubernetes api"; }
  std::string message(int value) const override {
    switch (static_cast<errc>(value)) {
      case errc::unreachable:
        return "the API server cannot be reached";
      case errc::timed_out:
        return "the API server did not answer in time";
      case errc::bad_answer:
        return "the API server's answer cannot be understood";
      case errc::too_large:
        return "the API server's answer is too large";
      case errc::bad_request:
        return "the API server finds the request wrong";
      case errc::unauthorized:
        return "the API server does not know who asks";
      case errc::forbidden:
        return "the API server does not allow it";
      case errc::not_found:
        return "not found";
      case errc::method_not_allowed:
        return "the resource does not support it";
      case errc::already_exists:
        return "already exists";
      case errc::conflict:
        return "in conflict with another change";
      case errc::gone:
        return "the resource version is too old";
      case errc::unsupported:
        return "the API server does not know the format";
      case errc::invalid:
        return "the object is invalid";
      case errc::too_many_requests:
        return "too many requests";
      case errc::server_error:
        return "the API server failed";
      case errc::unavailable:
        return "the API server is unavailable";
      case errc::fenced:
        return "this process may not write any more";
      case errc::not_configured:
        return "no credentials";
      case errc::shut_down:
        return "the client is being closed";
    }
    return "unknown error";
  }
};

}  // namespace

const boost::system::error_category& api_category() noexcept {
  static const category instance;
  return instance;
}

boost::system::error_code make_error_code(errc e) noexcept {
  return {static_cast<int>(e), api_category()};
}

void throw_exception_from_error(const failure& f, const boost::source_location&) {
  throw boost::system::system_error(f.code, f.message);
}

}  // namespace rw::k8s
