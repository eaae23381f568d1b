#include "rw/core/gather.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/watcher_installer/installation.hpp"

#include <utility>
#include <vector>

namespace rw::watcher_installer {

namespace asio = boost::asio;

asio::awaitable<k8s::result<void>> uninstall(std::shared_ptr<k8s::client> api,
                                             const install_options* options) {
  const auto& objects = options->manifests.objects();
  for (auto end = objects.rbegin(); end != objects.rend();) {
    const auto begin = end;
    std::vector<asio::awaitable<k8s::result<boost::json::value>>> work;
    for (; end != objects.rend() && rank_of(*end) == rank_of(*begin); ++end) {
      work.push_back(api->remove(type_of(*end), k8s::key_of(*end)));
    }
    const auto answers = co_await core::gather(std::move(work));
    for (const auto& got : answers) {
      if (!got && !got.error().is(k8s::errc::not_found)) co_return got.error();
    }
  }
  co_return k8s::result<void>();
}

}  // namespace rw::watcher_installer
