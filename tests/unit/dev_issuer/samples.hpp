#pragma once

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/issuer_kind.hpp"
#include "rw/tls/error.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace rw::dev_issuer::test {

using certificates::issuer_kind;

template <class T>
T good(tls::result<T> from) {
  BOOST_REQUIRE_MESSAGE(from.has_value(), from.error().message());
  return std::move(*from);
}

/// A Certificate as the certificate service makes it.
inline boost::json::value sample(issuer_kind kind, const std::string& kyma = "k1") {
  auto made = boost::json::parse(
      kind == issuer_kind::gardener
          ? R"({"apiVersion":"cert.gardener.cloud/v1alpha1","kind":"Certificate","metadata":{},
               "spec":{"commonName":"runtime-1","dnsNames":["skr.example.com","skr.svc"],
               "duration":"1440h","secretLabels":{"purpose":"test"},
               "privateKey":{"algorithm":"RSA","size":4096},
               "issuerRef":{"name":"klm-watcher-selfsigned","namespace":"istio-system"}}})"
          : R"({"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{},
               "spec":{"commonName":"runtime-1","dnsNames":["skr.example.com","skr.svc"],
               "duration":"1440h0m0s","renewBefore":"720h",
               "secretTemplate":{"labels":{"purpose":"test"}},
               "privateKey":{"algorithm":"RSA","size":4096,"rotationPolicy":"Always"},
               "usages":["digital signature","key encipherment"],
               "issuerRef":{"name":"klm-watcher-selfsigned","kind":"Issuer"}}})");
  made.at("metadata") =
      boost::json::object{{"name", kyma + "-webhook-tls"}, {"namespace", "istio-system"}};
  made.at("spec").as_object()["secretName"] = kyma + "-webhook-tls";
  return made;
}

/// Asks for a new certificate, as `cmctl renew` and Gardener's users do.
inline void ask(boost::json::value& certificate, issuer_kind kind) {
  if (kind == issuer_kind::gardener) {
    certificate.at("spec").as_object()["renew"] = true;
    return;
  }
  k8s::set_condition(certificate,
                     {.type = "Issuing", .status = "True", .reason = "ManuallyTriggered"},
                     std::chrono::system_clock::now());
}

}  // namespace rw::dev_issuer::test
