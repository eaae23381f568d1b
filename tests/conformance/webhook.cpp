#include "webhook.hpp"

#include "rw/k8s/objects/base64.hpp"
#include "rw/tls/transport.hpp"

namespace rw::conformance {
namespace {

/// What the webhook is asked about until it is known to be called.
constexpr auto probe = "probe";

}  // namespace

const k8s::resource_type mutating_configurations{
    {"admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"},
    "mutatingwebhookconfigurations",
    false};

webhook::webhook(sandbox& in, webhook_kind as)
    : in_(in),
      as_(as),
      name_(in.server.unique("hook") + ".example.com"),
      ca_(tls::issuer::create({.common_name = "webhook CA"}).value()) {
  const auto own = ca_.issue({.common_name = "webhook",
                              .dns_names = {"localhost"},
                              .ips = {"127.0.0.1"},
                              .server_auth = true})
                       .value();
  auto credentials =
      tls::credentials::from_text({.certificate = own.certificate, .key = own.key}).value();
  transport_ = tls::make_server_transport(std::move(credentials)).value();
  auto& here = in_.server.here;
  here.on_thread([&] {
    server_ = std::make_unique<http::server>(
        here.executor(),
        http::server_options{"webhook", {boost::asio::ip::address_v4::loopback(), 0}, {}}, *this,
        http::server_environment{*transport_, here.watchdog, here.log, here.metrics});
    tasks_ = std::make_unique<core::task_group>(here.executor());
    released_ = std::make_unique<core::wake>(here.executor());
    tasks_->spawn(server_->run());
  });
}

webhook::~webhook() {
  unregister();
  auto& here = in_.server.here;
  tasks_->cancel();
  here.call(tasks_->join());
  here.on_thread([this] {
    server_.reset();
    released_.reset();
  });
}

std::string webhook::url() const {
  return "https://127.0.0.1:" + std::to_string(server_->address().port()) + "/validate";
}

std::string webhook::ca_bundle() const {
  return k8s::base64_encode(ca_.certificate_pem());
}

void webhook::call_for(json rules, json members) {
  auto entry = json{{"name", name_},
                    {"admissionReviewVersions", boost::json::array{"v1"}},
                    {"clientConfig", {{"url", url()}, {"caBundle", ca_bundle()}}},
                    {"rules", std::move(rules)},
                    {"sideEffects", "None"},
                    {"timeoutSeconds", 10},
                    {"failurePolicy", "Fail"},
                    {"namespaceSelector", {{"matchLabels", {{"conformance", in_.ns}}}}}};
  for (auto& [key, value] : members.as_object()) entry.as_object()[key] = value;
  // A second webhook of the same server tells when the first is in force: both are in one
  // configuration, and this one is asked about one ConfigMap only.
  auto scout = entry;
  scout.as_object()["name"] = "scout-" + name_;
  scout.as_object()["rules"] = boost::json::array{rule(config_maps, {"CREATE"})};
  scout.as_object()["clientConfig"] = {{"url", url() + "/scout"}, {"caBundle", ca_bundle()}};
  scout.as_object()["objectSelector"] = {{"matchLabels", {{"scout", name_}}}};
  scout.as_object()["failurePolicy"] = "Ignore";
  scout.as_object()["sideEffects"] = "None";
  const auto& type =
      as_ == webhook_kind::mutating ? mutating_configurations : webhook_configurations;
  in_.ok(in_.api.create(
      type,
      object(type, name_, {{"webhooks", boost::json::array{std::move(entry), std::move(scout)}}})));
  registered_ = true;
  in_.eventually([&] {
    static_cast<void>(in_.server.here.call(in_.api.create(
        config_maps, in_.here(config_map(probe, nullptr, {{"scout", name_}})), {.dry_run = true})));
    const std::lock_guard lock(guard_);
    return scouted_;
  });
  requests();
}

void webhook::unregister() {
  if (!registered_) return;
  const auto& type =
      as_ == webhook_kind::mutating ? mutating_configurations : webhook_configurations;
  static_cast<void>(in_.server.here.call(in_.api.remove(type, {"", name_})));
}

void webhook::answer(decision by) {
  const std::lock_guard lock(guard_);
  decide_ = std::move(by);
}

void webhook::hang() {
  const std::lock_guard lock(guard_);
  hangs_ = true;
}

std::vector<json> webhook::requests() {
  const std::lock_guard lock(guard_);
  return std::exchange(requests_, {});
}

json webhook::request() {
  auto got = requests();
  BOOST_REQUIRE_EQUAL(got.size(), 1u);
  return std::move(got.front());
}

void webhook::hold() {
  const std::lock_guard lock(guard_);
  holds_ = true;
}

bool webhook::is_holding() {
  const std::lock_guard lock(guard_);
  return holding_;
}

void webhook::release() {
  in_.server.here.on_thread([this] { released_->set(); });
}

void webhook::send(unsigned status, std::string body) {
  const std::lock_guard lock(guard_);
  raw_.emplace(status, std::move(body));
}

void webhook::redirect(unsigned status, std::string path) {
  const std::lock_guard lock(guard_);
  redirect_.emplace(status, std::move(path));
}

std::string webhook::target() {
  const std::lock_guard lock(guard_);
  return target_;
}

boost::asio::awaitable<void> webhook::handle(http::request& from, http::response& into) {
  auto review = parse(from.body);
  const std::lock_guard lock(guard_);
  target_ = from.target;
  if (redirect_ && !from.target.starts_with(redirect_->second)) {
    into.status = redirect_->first;
    into.headers.add("location", redirect_->second);
    return {};
  }
  if (from.target.find("/scout") != std::string::npos) {
    scouted_ = true;
  } else {
    requests_.push_back(review.at("request"));
    if (hangs_) return wait_for_the_end();
    if (std::exchange(holds_, false)) {
      holding_ = true;
      return answer_when_released(std::move(review), &into);
    }
  }
  answer_now(review, into);
  return {};
}

boost::asio::awaitable<void> webhook::answer_when_released(json review, http::response* into) {
  co_await released_->wait();
  const std::lock_guard lock(guard_);
  answer_now(review, *into);
}

void webhook::answer_now(const json& review, http::response& into) {
  const auto& asked = review.at("request");
  if (raw_) {
    into.status = raw_->first;
    into.body = raw_->second;
    return;
  }
  auto response = decide_ ? decide_(asked) : json{{"allowed", true}};
  if (!has(response, "/uid")) response.as_object()["uid"] = asked.at("uid");
  into.headers.add("content-type", "application/json");
  into.body = serialize(json{{"apiVersion", text(review, "/apiVersion")},
                             {"kind", "AdmissionReview"},
                             {"response", std::move(response)}});
}

boost::asio::awaitable<void> webhook::wait_for_the_end() {
  const auto executor = co_await boost::asio::this_coro::executor;
  core::wake never(executor);
  co_await never.wait();
}

/// `operations`: a list, or one, as newer versions of Boost.JSON read {"CREATE"}.
json rule(const k8s::resource_type& type, json operations, std::string_view resource) {
  if (!operations.is_array()) operations = boost::json::array{std::move(operations)};
  return {{"apiGroups", boost::json::array{type.gvk.group}},
          {"apiVersions", boost::json::array{type.gvk.version}},
          {"operations", std::move(operations)},
          {"resources",
           boost::json::array{resource.empty() ? std::string_view(type.plural) : resource}}};
}

webhook::decision patch_by(json operations) {
  return [text = k8s::base64_encode(serialize(operations))](const json&) -> json {
    return {{"allowed", true}, {"patchType", "JSONPatch"}, {"patch", text}};
  };
}

json deny(const json&) {
  return {{"allowed", false}, {"status", {{"message", "not like this"}}}};
}

}  // namespace rw::conformance
