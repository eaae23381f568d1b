#include "rw/k8s/client/object_api.hpp"

#include <utility>

namespace rw::k8s {
namespace {

namespace asio = boost::asio;

class client_objects final : public object_api {
 public:
  explicit client_objects(client& api) : api_(api) {}

  asio::awaitable<result<value>> get(resource_type type, object_key key) override {
    return api_.get(std::move(type), std::move(key));
  }
  asio::awaitable<result<value>> create(resource_type type, value object) override {
    return api_.create(std::move(type), std::move(object));
  }
  asio::awaitable<result<value>> update(resource_type type, value object) override {
    return api_.update(std::move(type), std::move(object));
  }
  asio::awaitable<result<value>> merge(resource_type type, object_key key, value change) override {
    return api_.patch(std::move(type), std::move(key), patch_type::merge, std::move(change));
  }

 private:
  client& api_;
};

}  // namespace

std::shared_ptr<object_api> objects_of(client& api) {
  return std::make_shared<client_objects>(api);
}

}  // namespace rw::k8s
