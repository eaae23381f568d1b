#include "rw/reactors/dev/issuer/dev_issuer.hpp"

#include "rw/core/task_group.hpp"
#include "rw/k8s/controller/controller.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/dev/issuer/order.hpp"
#include "rw/reactors/dev/issuer/random_delay.hpp"
#include "rw/reactors/dev/issuer/root_ca.hpp"
#include "rw/reactors/dev/issuer/status.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/tls/certificate.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace rw::dev_issuer {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::reconcile_result;

constexpr auto secret_index = "dev-issuer/secret";
constexpr auto no_root_yet = std::chrono::milliseconds(250);
constexpr auto overtaken = std::chrono::milliseconds(50);
constexpr auto request_taken = std::chrono::seconds(1);  // as in cert-management

}  // namespace

class issuer_simulator::implementation final : public k8s::reconciler {
 public:
  implementation(asio::any_io_executor executor, issuer_options with, issuer_sources from,
                 issuer_environment in);

  asio::awaitable<void> run();
  std::uint64_t roots() const noexcept { return roots_.made(); }
  std::uint64_t certificates() const noexcept { return issued_; }

 private:
  /// Nothing: continue.
  using step = asio::awaitable<std::optional<reconcile_result>>;

  asio::awaitable<reconcile_result> reconcile(k8s::object_key key) override;
  asio::awaitable<reconcile_result> issue(json::value certificate, order wanted,
                                          std::string reason);
  step begin(json::value* certificate, const std::string* reason);
  step write_secret(const json::value* certificate, const order* wanted,
                    std::optional<tls::certificate>* leaf);
  step write(json::value* certificate, change change);
  reconcile_result until_renewal(const json::value& secret, const order& wanted) const;
  wall_time now() const {
    return std::chrono::floor<std::chrono::seconds>(environment_.clock.wall());
  }

  const asio::any_io_executor executor_;
  const issuer_options options_;
  const issuer_sources sources_;
  const issuer_environment environment_;
  const k8s::resource_type type_;
  core::counter& counter_;
  random_delay delay_;
  root_ca roots_;
  std::uint64_t issued_ = 0;
  k8s::controller controller_;
};

issuer_simulator::implementation::implementation(asio::any_io_executor executor,
                                                 issuer_options with, issuer_sources from,
                                                 issuer_environment in)
    : executor_(executor),
      options_(std::move(with)),
      sources_(from),
      environment_(std::move(in)),
      type_(certificates::certificates_type(options_.kind)),
      counter_(core::make_counter(environment_.metrics, "rw_dev_issuer_certificates_total",
                                  "Number of certificates issued")),
      delay_(executor, environment_.clock, options_.delay, environment_.random),
      roots_(executor, options_, from, environment_),
      controller_(executor, {.name = "dev-issuer", .concurrent = options_.concurrent}, *this,
                  {environment_.clock, environment_.watchdog, environment_.log,
                   environment_.metrics, environment_.random}) {
  sources_.certificates.add_index(
      secret_index, [](const k8s::object& object, std::vector<std::string>& values) {
        const auto value = object.parse();
        const auto name = k8s::find_string(value, {"spec", "secretName"});
        values.push_back(to_string(k8s::object_key{std::string(object.ns()), std::string(name)}));
      });
  controller_.watch(sources_.certificates);
  controller_.watch(sources_.secrets,
                    [this](const k8s::delta& change, k8s::controller::keys& keys) {
                      const auto found = sources_.certificates.objects().by_index(
                          secret_index, to_string(change.latest().key()));
                      for (const auto& certificate : found) keys.push_back(certificate.key());
                    });
}

asio::awaitable<void> issuer_simulator::implementation::run() {
  core::task_group tasks(executor_);
  tasks.spawn(roots_.run());
  tasks.spawn(controller_.run());
  co_await tasks.join();
}

asio::awaitable<reconcile_result> issuer_simulator::implementation::reconcile(k8s::object_key key) {
  const auto known = sources_.certificates.objects().get(key);
  if (!known) co_return reconcile_result::done();
  auto certificate = known.parse();
  if (issuer_of(certificate) != options_.issuer || k8s::is_being_deleted(certificate)) {
    co_return reconcile_result::done();
  }
  auto wanted = read_order(certificate, options_.kind, options_.key, options_.honour_private_key);
  if (!wanted) {
    const auto text = wanted.error().text;
    auto telling = say_failed(certificate, options_.kind, text, now());
    if (telling) co_await write(&certificate, std::move(*telling));
    co_return reconcile_result::terminal(text);
  }
  const auto there = sources_.secrets.objects().get(wanted->secret).parse();
  if (reason_to_issue(certificate, there, *wanted, options_.kind, now()).empty()) {
    co_return until_renewal(there, *wanted);
  }

  // The caches may be older than the last writes: read from the API server before signing again.
  auto newest = co_await environment_.api.get(type_, std::move(key));
  if (!newest && newest.error().is(k8s::errc::not_found)) co_return reconcile_result::done();
  if (!newest) co_return reconcile_result::error(newest.error());
  auto secret = co_await environment_.api.get(secrets_type(), wanted->secret);
  if (!secret && !secret.error().is(k8s::errc::not_found)) {
    co_return reconcile_result::error(secret.error());
  }
  if (auto taken = take_request(*newest, options_.kind, now())) {
    const auto ended = co_await write(&*newest, std::move(*taken));
    co_return ended.value_or(reconcile_result::requeue_after(request_taken));
  }
  const json::value live = secret ? std::move(*secret) : json::value(nullptr);
  wanted = read_order(*newest, options_.kind, options_.key, options_.honour_private_key);
  if (!wanted) co_return reconcile_result::requeue_after(overtaken);
  std::string reason(reason_to_issue(*newest, live, *wanted, options_.kind, now()));
  if (reason.empty()) co_return until_renewal(live, *wanted);
  auto outcome = co_await issue(std::move(*newest), std::move(*wanted), std::move(reason));
  co_return outcome;
}

reconcile_result issuer_simulator::implementation::until_renewal(const json::value& secret,
                                                                 const order& wanted) const {
  const auto renewal = renewal_of(secret, wanted);
  if (!renewal) return reconcile_result::done();
  const auto wait = *renewal - environment_.clock.wall();
  return reconcile_result::requeue_after(std::max<core::duration>(wait, std::chrono::seconds(1)));
}

asio::awaitable<reconcile_result> issuer_simulator::implementation::issue(json::value certificate,
                                                                          order wanted,
                                                                          std::string reason) {
  auto ended = co_await begin(&certificate, &reason);
  if (ended) co_return *ended;
  std::optional<tls::certificate> leaf;
  ended = co_await write_secret(&certificate, &wanted, &leaf);
  if (ended) co_return *ended;
  const bool go_on = co_await delay_.pause();
  if (!go_on) co_return reconcile_result::done();
  auto said = say_issued(certificate, options_.kind, *leaf, wanted, now());
  ended = co_await write(&certificate, std::move(said));
  if (ended) co_return *ended;
  ++issued_;
  counter_.Increment();
  environment_.log.info("dev issuer: certificate issued",
                        {{"certificate", to_string(k8s::key_of(certificate))}, {"reason", reason}});
  co_return reconcile_result::requeue_after(
      std::max<core::duration>(leaf->not_after() - wanted.renew_before - environment_.clock.wall(),
                               std::chrono::seconds(1)));
}

/// Writes that the certificate is being issued, so that a repeated request does not repeat the
/// issue.
issuer_simulator::implementation::step issuer_simulator::implementation::begin(
    json::value* certificate, const std::string* reason) {
  if (auto said = say_issuing(*certificate, options_.kind, *reason, now())) {
    const auto ended = co_await write(certificate, std::move(*said));
    if (ended) co_return ended;
  }
  co_return std::nullopt;
}

/// Signs with the current root.
issuer_simulator::implementation::step issuer_simulator::implementation::write_secret(
    const json::value* certificate, const order* wanted, std::optional<tls::certificate>* leaf) {
  bool go_on = co_await delay_.pause();
  if (!go_on) co_return reconcile_result::done();
  auto root = co_await environment_.api.get(secrets_type(), options_.root);
  if (!root && root.error().is(k8s::errc::not_found)) {
    co_return reconcile_result::requeue_after(no_root_yet);
  }
  if (!root) co_return reconcile_result::error(root.error());
  const auto authority = read_root(*root);
  if (!authority) co_return reconcile_result::requeue_after(no_root_yet);
  auto request = wanted->request;
  request.not_before = now();
  const auto issued = authority->issue(request);
  if (!issued) {
    const auto text = "no certificate can be made: " + issued.error().message();
    co_return reconcile_result::terminal(text);
  }
  const auto parsed = tls::certificate::from_pem(issued->certificate);
  if (!parsed) co_return reconcile_result::terminal("unreadable: " + parsed.error().message());
  *leaf = *parsed;
  auto secret = secret_for(*certificate, *wanted, *issued, authority->certificate_pem());
  go_on = co_await delay_.pause();
  if (!go_on) co_return reconcile_result::done();
  const auto written = co_await environment_.api.apply(
      secrets_type(), std::move(secret), {.field_manager = options_.field_manager, .force = true});
  if (!written) co_return reconcile_result::error(written.error());
  co_return std::nullopt;
}

/// Writes the Certificate at its resourceVersion. After a conflict the next reconcile reads it
/// again.
issuer_simulator::implementation::step issuer_simulator::implementation::write(
    json::value* certificate, change change) {
  auto written = co_await environment_.api.patch(
      type_, k8s::key_of(*certificate), k8s::patch_type::merge, std::move(change.patch),
      {.field_manager = options_.field_manager, .subresource = change.subresource});
  if (written) {
    *certificate = std::move(*written);
    co_return std::nullopt;
  }
  if (written.error().is(k8s::errc::not_found)) co_return reconcile_result::done();
  if (written.error().is(k8s::errc::conflict)) co_return reconcile_result::requeue_after(overtaken);
  co_return reconcile_result::error(written.error());
}

issuer_simulator::issuer_simulator(asio::any_io_executor executor, issuer_options with,
                                   issuer_sources from, issuer_environment in)
    : impl_(std::make_unique<implementation>(std::move(executor), std::move(with), from,
                                             std::move(in))) {}

issuer_simulator::~issuer_simulator() = default;

asio::awaitable<void> issuer_simulator::run() {
  return impl_->run();
}

std::uint64_t issuer_simulator::roots() const noexcept {
  return impl_->roots();
}

std::uint64_t issuer_simulator::certificates() const noexcept {
  return impl_->certificates();
}

}  // namespace rw::dev_issuer
