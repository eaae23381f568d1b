#pragma once

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/certificates/renewal.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace rw::certificates::test {

namespace json = boost::json;
using namespace std::chrono_literals;

/// What a controller does with a Certificate from one moment to the next. After the sources of
/// cert-manager (pkg/controller/certificates: trigger, issuing) and of cert-management
/// (pkg/controller/issuer/certificate: checkForRenewAndSucceeded).
struct controller_model {
  issuer_kind kind;
  wall_time works_from = wall_time::max();  ///< before, each issuance fails
  bool fails_at_times = false;              ///< every second issuance, the first one included
  std::chrono::seconds takes = 20s;

  void step(json::value& certificate, wall_time now) {
    if (kind == issuer_kind::cert_manager) {
      step_cert_manager(certificate, now);
    } else {
      step_gardener(certificate, now);
    }
  }

  bool fails(wall_time now) const {
    return now < works_from || (fails_at_times && started % 2 == 1);
  }

  void step_cert_manager(json::value& certificate, wall_time now) {
    const auto issuing = k8s::find_condition(certificate, "Issuing");
    if (!issuing || issuing->status != "True") return begun.reset();
    if (!begun) {
      begun = now;
      ++started;
    }
    if (now < *begun + takes) return;
    begun.reset();
    auto& status = certificate.at("status").as_object();
    if (fails(now)) {
      // The certificate is still good: the trigger controller has no reason to try again.
      k8s::set_condition(certificate, {.type = "Issuing", .status = "False", .reason = "Failed"},
                         now);
      status["lastFailureTime"] = k8s::format_time(now);
      return;
    }
    status["conditions"] = json::array();
    status["notBefore"] = k8s::format_time(now);
    status["notAfter"] = k8s::format_time(now + 1440h);
  }

  void step_gardener(json::value& certificate, wall_time now) {
    auto& spec = certificate.at("spec").as_object();
    auto& status = certificate.at("status").as_object();
    const auto issued =
        k8s::parse_rfc3339(k8s::find_string(certificate, {"status", "issuanceDate"}));
    if (spec.contains("renew")) {
      spec.erase("renew");
      spec["ensureRenewedAfter"] = k8s::format_time(now);
      begun.reset();  // an order that was under way is given up
      return;
    }
    const auto after =
        k8s::parse_rfc3339(k8s::find_string(certificate, {"spec", "ensureRenewedAfter"}));
    if (!after || *after <= *issued) return;
    if (!begun) {
      if (failed && now < *failed + 10min) return;
      begun = now;
      ++started;
      status["state"] = "Pending";
    }
    if (now < *begun + takes) return;
    begun.reset();
    if (fails(now)) {
      failed = now;
      status["state"] = "Error";
      return;
    }
    status["state"] = "Ready";
    status["issuanceDate"] = k8s::format_time(now);
    status["expirationDate"] = k8s::format_time(now + 1440h);
  }

  std::optional<wall_time> begun = {};
  std::optional<wall_time> failed = {};
  unsigned started = 0;
};

/// A Certificate of either issuer_kind that was issued then.
inline json::value issued_certificate(wall_time at) {
  auto made = json::parse(R"({"metadata": {"name": "k1-webhook-tls", "resourceVersion": "1"},
                              "spec": {}, "status": {"state": "Ready"}})");
  auto& status = made.at("status").as_object();
  for (const auto* name : {"issuanceDate", "notBefore"}) status[name] = k8s::format_time(at);
  for (const auto* name : {"expirationDate", "notAfter"}) {
    status[name] = k8s::format_time(at + 1440h);
  }
  return made;
}

/// RFC 7386.
inline void merge(json::value& into, const json::value& change) {
  if (!change.is_object()) {
    into = change;
    return;
  }
  if (!into.is_object()) into = json::object();
  for (const auto& [name, each] : change.get_object()) {
    if (each.is_null()) {
      into.as_object().erase(name);
    } else {
      merge(into.as_object()[name], each);
    }
  }
}

/// Asks the issuer if it is its turn, as certificate_service does. True if it was asked.
inline bool ask_in_turn(json::value& certificate, issuer_kind kind, reissue_cause cause,
                        wall_time now) {
  if (is_being_issued(certificate, kind, cause)) return false;
  const auto turn = next_reissue(certificate, cause, {}, now);
  if (turn.at > now) return false;
  merge(certificate, request_reissue(certificate, kind, turn.attempt, now));
  if (kind == issuer_kind::cert_manager) merge(certificate, trigger_cert_manager(certificate, now));
  return true;
}

}  // namespace rw::certificates::test
