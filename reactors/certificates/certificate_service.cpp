#include "rw/reactors/certificates/certificate_service.hpp"

#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/object.hpp>

#include <utility>

namespace rw::certificates {
namespace {

namespace json = boost::json;

certificate_state failed(const k8s::failure& error) {
  certificate_state out;
  out.state = certificate_state::kind::failed;
  out.reason = error.message;
  out.failure = error;
  return out;
}

void recheck_within(certificate_state& state, core::duration by) {
  if (state.again == core::duration{} || by < state.again) state.again = by;
}

certificate_state refused(core::text_error error) {
  certificate_state out;
  out.state = certificate_state::kind::refused;
  out.reason = std::move(error.message);
  return out;
}

}  // namespace

certificate_service::certificate_service(k8s::client& api, service_caches caches,
                                         service_options options, service_environment environment)
    : api_(api),
      caches_(caches),
      options_(std::move(options)),
      environment_(environment),
      type_(certificates_type(options_.certificates.kind)),
      overdue_family_(prometheus::BuildGauge()
                          .Name("lifecycle_mgr_self_signed_cert_not_renew")
                          .Help("1 while the re-issue of a Kyma's certificate is overdue")
                          .Register(environment_.metrics)),
      reissues_(core::make_counter(environment_.metrics, "rw_certificate_reissues_total",
                                   "Number of requests for a new certificate")) {}

certificate_service::~certificate_service() {
  for (const auto& [kyma, gauge] : overdue_) overdue_family_.Remove(gauge);
}

evidence certificate_service::evidence_of(const json::value& kyma) {
  const auto key = key_for(k8s::key_of(kyma).name);
  return {std::string(k8s::label(kyma, runtime_id_label)), caches_.certificates.get(key).parse(),
          caches_.secrets.get(key).parse(), trust()};
}

certificate_state certificate_service::current(const json::value& kyma) {
  const auto wanted = certificate_for(kyma, options_.certificates);
  if (!wanted) return refused(wanted.error());
  return judge(evidence_of(kyma), pairs_, kind(), options_.judge, environment_.clock.wall());
}

boost::asio::awaitable<certificate_state> certificate_service::ensure(json::value kyma) {
  auto wanted = certificate_for(kyma, options_.certificates);
  if (!wanted) co_return refused(wanted.error());
  const auto name = k8s::key_of(kyma).name;
  const auto known = evidence_of(kyma);
  auto present = known.certificate;
  const auto now = environment_.clock.wall();
  auto state = judge(known, pairs_, kind(), options_.judge, now);
  const bool ask = must_ask(state, present, now);
  auto as_it_is = *wanted;
  if (!ask && known.secret.is_object() && keep_key(as_it_is, present)) {
    // Apply the new key shortly before the issuer renews the certificate by itself. While that
    // time is unknown (without a bundle, for instance) keep the old one.
    auto left = wall_time::duration::max();
    if (state.issued) {
      left = state.issued->not_after - options_.certificates.renew_before - std::chrono::hours(1) -
             now;
      if (left > wall_time::duration{}) recheck_within(state, left);
    }
    if (left > wall_time::duration{}) *wanted = std::move(as_it_is);
  }
  if (!covers(present, *wanted)) {
    k8s::apply_options options{.field_manager = options_.field_manager, .force = true};
    auto request = api_.apply(type_, std::move(*wanted), std::move(options));
    auto applied = co_await std::move(request);
    if (!applied) co_return failed(applied.error());
    present = std::move(*applied);
  }
  watch_overdue(name, state, now);
  if (!state.must_be_reissued) refusals_.erase(name);
  if (!ask) co_return state;
  auto request = reissue(name, std::move(present), state.cause, now);
  const auto asked = co_await std::move(request);
  const bool our_own =
      !asked && (asked.error().is(k8s::errc::fenced) || asked.error().is(k8s::errc::shut_down));
  if (!our_own) tell_refusal(kyma, asked ? std::string() : asked.error().message);
  if (!asked) {
    // The current certificate stays valid, and may be installed on the runtime.
    state.failure = asked.error();
    recheck_within(state, std::chrono::minutes(1));
  }
  co_return state;
}

boost::asio::awaitable<k8s::result<void>> certificate_service::remove(k8s::object_key kyma) {
  forget_overdue(kyma.name);
  refusals_.erase(kyma.name);
  const auto key = key_for(kyma.name);
  // The Certificate first: while it exists the issuer makes the Secret again.
  for (const auto* type : {&type_, &secrets_type()}) {
    auto request = api_.remove(*type, key);
    const auto gone = co_await std::move(request);
    if (!gone && !gone.error().is(k8s::errc::not_found)) co_return gone.error();
  }
  co_return k8s::result<void>();
}

/// What is there is known by the caches: the manager may not `get` these objects.
boost::asio::awaitable<k8s::result<void>> certificate_service::try_removal(
    k8s::object_key kyma, std::shared_ptr<k8s::write_preview> into) {
  const auto key = key_for(kyma.name);
  for (const auto* type : {&type_, &secrets_type()}) {
    const auto& cache = type == &type_ ? caches_.certificates : caches_.secrets;
    const auto live = cache.get(key);
    if (!live) continue;
    auto request = api_.remove(*type, key, {.dry_run = true});
    const auto tried = co_await std::move(request);
    if (!tried && tried.error().is(k8s::errc::not_found)) continue;
    if (!tried) co_return tried.error();
    into->add({.type = *type, .key = key, .live = live.parse()});
  }
  co_return k8s::result<void>();
}

issuer_kind certificate_service::kind() const noexcept {
  return options_.certificates.kind;
}

k8s::object_key certificate_service::key_for(const std::string& kyma) const {
  return {options_.certificates.ns, certificate_name(kyma)};
}

bool certificate_service::must_ask(judged_certificate& state, const json::value& present,
                                   wall_time now) {
  if (!state.must_be_reissued || is_being_issued(present, kind(), state.cause)) return false;
  const auto turn = next_reissue(present, state.cause, options_.backoff, now);
  if (turn.at > now) recheck_within(state, turn.at - now);
  return turn.at <= now;
}

boost::asio::awaitable<k8s::result<void>> certificate_service::reissue(std::string kyma,
                                                                       json::value present,
                                                                       reissue_cause cause,
                                                                       wall_time now) {
  const auto attempt = next_reissue(present, cause, options_.backoff, now).attempt;
  auto done = co_await patch(request_reissue(present, kind(), attempt, now), present, "");
  if (done && kind() == issuer_kind::cert_manager) {
    done = co_await patch(trigger_cert_manager(*done, now), present, "status");
  }
  if (done) {
    reissues_.Increment();
    environment_.log.info("certificate re-issue requested",
                          {{"kyma", kyma}, {"attempt", std::uint64_t{attempt}}});
    co_return k8s::result<void>();
  }
  if (done.error().is(k8s::errc::conflict) || done.error().is(k8s::errc::not_found)) {
    co_return k8s::result<void>();
  }
  co_return done.error();
}

boost::asio::awaitable<k8s::result<json::value>> certificate_service::patch(
    json::value change, const json::value& certificate, const char* subresource) {
  k8s::write_options options{.field_manager = options_.field_manager, .subresource = subresource};
  return api_.patch(type_, k8s::key_of(certificate), k8s::patch_type::merge, std::move(change),
                    std::move(options));
}

void certificate_service::tell_refusal(const json::value& kyma, const std::string& reason) {
  const auto key = k8s::key_of(kyma);
  auto& told = refusals_[key.name];
  const bool news = told != reason;
  told = reason;
  if (reason.empty()) refusals_.erase(key.name);
  if (reason.empty() || !news) return;
  environment_.log.warning("certificate re-issue could not be requested",
                           {{"name", key.name}, {"reason", reason}});
  environment_.events.warning(k8s::reference_to(kyma), "CertificateNotReissued"_reason,
                              "The certificate of the runtime must be re-issued, but the request "
                              "failed and will be retried: " +
                                  reason);
}

const trust_bundle* certificate_service::trust() {
  const auto now = caches_.gateways.get(options_.gateway);
  if (!now) return nullptr;
  if (!trust_from_ || !same_state(trust_from_, now)) {
    trust_ = read_trust_bundle(now.parse());
    trust_from_ = now;
  }
  return &trust_;
}

void certificate_service::watch_overdue(const std::string& kyma, certificate_state& state,
                                        wall_time now) {
  if (!state.must_be_reissued) return forget_overdue(kyma);
  const auto left = *trust_.added_at + options_.overdue_after - now;
  if (left > wall_time::duration{}) {
    recheck_within(state, left);
    return forget_overdue(kyma);
  }
  if (overdue_.contains(kyma)) return;
  auto& gauge = overdue_family_.Add({{"kyma_name", kyma}});
  gauge.Set(1);
  overdue_[kyma] = &gauge;
  environment_.log.warning("certificate re-issue overdue",
                           {{"name", kyma}, {"since", k8s::format_time(*trust_.added_at)}});
}

void certificate_service::forget_overdue(const std::string& kyma) {
  const auto at = overdue_.find(kyma);
  if (at == overdue_.end()) return;
  overdue_family_.Remove(at->second);
  overdue_.erase(at);
}

k8s::informer_options certificates_informer(const certificate_options& options) {
  k8s::informer_options out;
  out.objects.ns = options.ns;
  return out;
}

k8s::informer_options secrets_informer(const certificate_options& options) {
  k8s::informer_options out;
  out.objects.ns = options.ns;
  out.objects.labels = secret_selector();
  return out;
}

}  // namespace rw::certificates
