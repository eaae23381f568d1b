#include "rw/core/channel_error.hpp"

#include <string>

namespace rw::core {
namespace {

class category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "rw.channel"; }

  std::string message(int value) const override {
    switch (static_cast<channel_errc>(value)) {
      case channel_errc::closed:
        return "the channel is closed";
    }
    return "unknown channel error";
  }
};

}  // namespace

const boost::system::error_category& channel_category() noexcept {
  static const category instance;
  return instance;
}

boost::system::error_code make_error_code(channel_errc error) noexcept {
  return {static_cast<int>(error), channel_category()};
}

}  // namespace rw::core
