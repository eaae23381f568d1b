#include "rw/reactors/cli/diff_app.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/k8s/objects/url.hpp"
#include "rw/reactors/cli/runtime_diff.hpp"

#include <boost/json/serialize.hpp>

#include <stdexcept>
#include <unistd.h>

namespace rw::cli {

namespace asio = boost::asio;
namespace json = boost::json;

diff_app::diff_app(services& with, diff_settings settings)
    : app(with),
      settings_(std::move(settings)),
      manager_(with, settings_, "runtime-watcher-diff"),
      output_(with.executor, STDOUT_FILENO),
      errors_(with.executor, STDERR_FILENO) {}

asio::awaitable<int> diff_app::show() {
  std::string target = "/diff?runtime=";
  k8s::append_percent_encoded(target, settings_.kyma, "");
  const auto got = co_await manager_.ask_object(std::move(target));
  if (!got.warning.empty()) co_await errors_.write("warning: " + got.warning + "\n");
  if (!got.error.empty()) {
    throw std::runtime_error((got.no_way ? "no leader: " : "") + core::printable(got.error) +
                             (got.next.empty() ? "" : "\n  fix: " + got.next));
  }
  const auto& diff = got.runtimes;
  const auto error = k8s::find_string(diff, {"error"});
  if (!error.empty()) throw std::runtime_error(core::printable(error));
  if (k8s::find_array(diff, {"components"}) == nullptr) {
    throw std::runtime_error("the leader does not respond as a manager does");
  }
  auto text = settings_.format == "json" ? json::serialize(diff) + "\n" : diff_text(diff);
  const auto failed = co_await output_.write(std::move(text));
  co_return failed ? 1 : exit_code_of(diff);
}

asio::awaitable<int> diff_app::run() {
  auto code = co_await run_to_end(show(), manager_.close());
  co_return code;
}

}  // namespace rw::cli
