#include "rw/reactors/gateway_secret/report.hpp"

#include "rw/reactors/shared/explanations.hpp"

namespace rw::gateway_secret {
namespace {

/// The words of a step: for metrics and logs, and for an event.
struct step_words {
  const char* name;
  const char* reason;
  const char* message;
};

const step_words& words_for(rotation_step step) {
  static constexpr step_words words[] = {
      {"create", "GatewaySecretCreated"_reason, "the gateway Secret was made"},
      {"repair_pair", "GatewaySecretRepaired"_reason,
       "tls.crt and tls.key could not be served and were replaced"},
      {"repair_bundle", "GatewaySecretRepaired"_reason,
       "ca.crt was damaged or incomplete and was completed"},
      {"repair_time", "GatewaySecretRepaired"_reason,
       "caAddedToBundleAt was missing or wrong and is now; the grace period restarts"},
      {"add_authority", "CABundleExtended"_reason,
       "the root's new CA was added to the bundle; client certificates are re-issued"},
      {"drop_expired", "ExpiredCADropped"_reason, "expired CAs were dropped from the bundle"},
      {"switch_server", "ServerCertificateSwitched"_reason,
       "the gateway serves with the root's certificate from now on"}};
  return words[static_cast<std::size_t>(step)];
}

core::gauge& expiry_of(core::metrics& metrics, const char* certificate) {
  return core::make_gauge(metrics, "rw_gateway_secret_certificate_expiry_timestamp_seconds",
                          "Time at which the certificate expires that the gateway serves with, and "
                          "that of the root; 0: unknown",
                          {{"certificate", certificate}});
}

double seconds_of(wall_time time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

bool needs_a_person(const rotation_plan& made) {
  return !reason_of(made.phase).empty();
}

/// Returns the part of a plan whose changes are worth an event. It excludes the missing runtimes,
/// which change all the time.
std::string state_of(const rotation_plan& made) {
  auto state = std::string(name_of(made.phase)) + (made.near_deadline ? " near" : "");
  if (!made.held_up_by.empty()) state.append(" ").append(made.held_up_by);
  return needs_a_person(made) ? state + ": " + made.waiting : state;
}

}  // namespace

report::report(core::logger& log, core::metrics& metrics, k8s::event_sink& events)
    : log_(log),
      metrics_(metrics),
      events_(events),
      authorities_(core::make_gauge(metrics, "rw_gateway_secret_authorities",
                                    "Number of CAs in the gateway's bundle")),
      missing_(core::make_gauge(
          metrics, "rw_gateway_secret_missing_runtimes",
          "Number of runtimes that the switch of the server certificate waits for")),
      excused_(core::make_gauge(
          metrics, "rw_gateway_secret_excused_runtimes",
          "Number of runtimes that the switch of the server certificate does not wait for, as they "
          "have failed for --ca-excuse-after through a fault of their own")),
      held_up_(core::make_gauge(
          metrics, "rw_gateway_secret_held_up",
          "1 while a switch of the server certificate that is due waits for what no time excuses: "
          "a "
          "fault in KCP, of the issuer or of the manager, or too many runtimes that fail")),
      deadline_(core::make_gauge(
          metrics, "rw_gateway_secret_deadline_timestamp_seconds",
          "Time at which the server certificate is switched without the missing runtimes; 0: none "
          "is due")),
      close_to_expiry_(
          core::make_gauge(metrics, "lifecycle_mgr_gateway_secret_server_cert_close_to_expiry",
                           "1 if the gateway's server certificate is about to expire")),
      served_until_(expiry_of(metrics, "served")),
      root_until_(expiry_of(metrics, "root")) {
  for (std::size_t i = 0; i < phases; ++i) {
    phase_[i] =
        &core::make_gauge(metrics, "rw_gateway_secret_phase", "1 for the phase of the CA rotation",
                          {{"phase", std::string(name_of(static_cast<rotation_phase>(i)))}});
  }
}

void report::planned(const rotation_plan& made, const gateway_content* gateway,
                     const k8s::object_reference& about) {
  for (std::size_t i = 0; i < phases; ++i) phase_[i]->Set(i == std::size_t(made.phase) ? 1 : 0);
  missing_.Set(static_cast<double>(made.missing));
  excused_.Set(static_cast<double>(made.excused));
  held_up_.Set(made.held_up_by.empty() ? 0 : 1);
  authorities_.Set(gateway == nullptr ? 0 : static_cast<double>(gateway->bundle.size()));
  deadline_.Set(seconds_of(made.deadline.value_or(wall_time{})));
  const bool waits = made.phase == rotation_phase::distributing;
  auto line = state_of(made) + (waits ? made.waiting : "");
  if (line == logged_) return;
  logged_ = std::move(line);
  const bool bad = needs_a_person(made);
  if (bad) {
    log_.warning("CA rotation needs attention",
                 {{"phase", name_of(made.phase)}, {"why", made.waiting}});
  } else {
    const auto write = made.near_deadline ? &core::logger::warning : &core::logger::info;
    (log_.*write)("CA rotation",
                  {{"phase", name_of(made.phase)},
                   {"waiting", made.waiting},
                   {"missing", made.missing},
                   {"deadline", made.deadline ? k8s::format_time(*made.deadline) : ""}});
  }
  auto state = state_of(made);
  if (state == reported_) return;
  const bool first = reported_.empty();
  reported_ = std::move(state);
  if (bad) {
    return emit(about, true, std::string(reason_of(made.phase)), made.waiting);
  }
  if (first && made.phase == rotation_phase::settled) return;
  const bool held_up = !made.held_up_by.empty();
  emit(about, made.near_deadline || held_up,
       made.near_deadline ? "CARotationDeadlineNear"_reason
       : held_up          ? "CARotationHeldUp"_reason
                          : "CARotation"_reason,
       std::string(name_of(made.phase)) + (made.waiting.empty() ? "" : ": " + made.waiting));
}

void report::done(const rotation_plan& made, const k8s::object_reference& about) {
  for (const auto step : made.steps) {
    const auto& words = words_for(step);
    core::make_counter(metrics_, "rw_gateway_secret_steps_total",
                       "Number of completed steps of the CA rotation", {{"step", words.name}})
        .Increment();
    log_.info("gateway secret written", {{"step", words.name}, {"object", about.name}});
    emit(about, false, words.reason, words.message);
  }
  if (made.left_behind.empty()) return;
  log_.warning("CA rotation did not wait for runtimes", {{"missing", made.left_behind}});
  emit(about, true, "CARotationRuntimesLeftBehind"_reason,
       "The deadline has come: the gateway serves with a certificate that some runtimes do not "
       "trust until they get the new CA: " +
           made.left_behind);
}

void report::expiry(const std::optional<tls::certificate>& served,
                    const std::optional<root_secret>& root, wall_time now,
                    std::chrono::seconds window, const k8s::object_reference& about) {
  served_until_.Set(served ? seconds_of(served->not_after()) : 0);
  root_until_.Set(root ? seconds_of(root->server.not_after()) : 0);
  const bool close = served && served->not_after() - window <= now;
  close_to_expiry_.Set(close ? 1 : 0);
  if (close == close_) return;
  close_ = close;
  if (!close) {
    log_.info("server certificate of the gateway is no longer close to expiry");
    return;
  }
  const auto expiry = k8s::format_time(served->not_after());
  log_.warning("server certificate of the gateway is close to expiry", {{"not_after", expiry}});
  emit(about, true, "ServerCertificateExpiring"_reason,
       "the server certificate expires at " + expiry);
}

void report::emit(const k8s::object_reference& about, bool bad, std::string_view reason,
                  const std::string& message) {
  if (bad) {
    events_.warning(about, reason, message);
  } else {
    events_.normal(about, reason, message);
  }
}

}  // namespace rw::gateway_secret
