#include "rw/reactors/cli/doctor_pre_app.hpp"

#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/doctor_pre_checks.hpp"
#include "rw/reactors/cli/kcp_error.hpp"

#include <stdexcept>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;

k8s::client_options pre_client_options(const char* name) {
  return {.name = name,
          .user_agent = "runtime-watcher-doctor",
          .field_manager = "kubectl",  // as `kubectl apply --server-side`
          .connect = std::chrono::seconds(5),
          .request = std::chrono::seconds(10),
          .deadline = std::chrono::seconds(20),
          .retries = 1};
}

[[noreturn]] void throw_unreadable(const k8s::failure& error) {
  const auto told = describe(error, {"get", "", "version"}, {});
  throw std::runtime_error((told.next.empty() ? "KCP: " : "") + text_of(told));
}

}  // namespace

asio::awaitable<std::string> read_user(k8s::client* api) {
  const auto got = co_await api->raw(
      "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "application/json",
      R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})");
  if (!got) co_return "";
  const auto read = k8s::read_json(*got);
  co_return read ? std::string(k8s::find_string(*read, {"status", "userInfo", "username"})) : "";
}

void expect_response(const k8s::failure& error) {
  if (error.is(k8s::errc::not_found) || error.is(k8s::errc::forbidden)) return;
  throw_unreadable(error);
}

doctor_pre_app::doctor_pre_app(services& with, doctor_settings settings)
    : app(with),
      settings_(std::move(settings)),
      objects_(read_manifests(settings_.manifests)),
      planned_(find_manager(objects_)),
      kcp_(with.executor, load_kcp_config(settings_.kcp), pre_client_options("kcp"),
           with.for_client()),
      runtimes_(with.executor,
                {.name = "skr",
                 .client = pre_client_options("runtimes"),
                 .local = settings_.local_runtimes},
                with.for_client()),
      journal_(with, settings_.format == "json", settings_.kcp) {}

doctor_pre_app::~doctor_pre_app() = default;

/// Returns the user of the kubeconfig.
asio::awaitable<std::string> doctor_pre_app::check_version() {
  using version = std::pair<unsigned, unsigned>;
  journal_.begin("version of KCP");
  const auto got = co_await kcp_.server_version();
  if (!got) throw_unreadable(got.error());
  const auto text_of = [](version v) {
    return std::to_string(v.first) + "." + std::to_string(v.second);
  };
  if (*got < oldest_kubernetes) {
    co_await journal_.report({finding_state::failed, "version",
                              "KCP has version " + text_of(*got) + " of Kubernetes, and needs " +
                                  text_of(oldest_kubernetes),
                              "upgrade KCP"});
  } else {
    co_await journal_.report({finding_state::proven, "version",
                              "KCP responds, with version " + text_of(*got) + " of Kubernetes"});
  }
  auto user = co_await read_user(&kcp_);
  co_return user;
}

asio::awaitable<int> doctor_pre_app::check_all() {
  pre_context with{services_, settings_, objects_, planned_, kcp_, runtimes_, journal_};
  with.user = co_await check_version();
  co_await check_manifests(&with);
  journal_.open(pre_group::manager);
  co_await check_needs(&with);
  journal_.open(pre_group::runtimes);
  co_await check_runtimes(&with);
  const auto code = co_await journal_.conclude();
  co_return code;
}

asio::awaitable<void> doctor_pre_app::close() {
  journal_.clear_progress();
  co_await runtimes_.close();
  co_await kcp_.close();
}

asio::awaitable<int> doctor_pre_app::run() {
  auto code = co_await run_to_end(check_all(), close(), journal_.show_progress());
  co_return code;
}

}  // namespace rw::cli
