#include "rw/tls/transport.hpp"

#include "rw/tls/openssl.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/tls/pki.hpp"
#include "tests/unit/tls/scratch.hpp"
#include "tests/unit/tls/stream_pair.hpp"
#include <atomic>
#include <cstdlib>
#include <thread>

BOOST_AUTO_TEST_SUITE(transport)

using namespace rw::tls;
using namespace rw::tls::test;

BOOST_FIXTURE_TEST_CASE(handshake_gives_tls_13_and_carries_data_both_ways, loop) {
  const auto server = serving();
  const auto client = connecting();
  stream_pair pair(context, *server, *client);
  pair.establish();
  BOOST_TEST(SSL_version(pair.tls_server().native()) == TLS1_3_VERSION);
  BOOST_TEST(pair.client->protocol() == "h2");
  BOOST_TEST(pair.server->protocol() == "h2");
  BOOST_TEST(pair.server->peer_certificate().empty());
  const auto seen = rw::tls::certificate::from_der(pair.client->peer_certificate());
  BOOST_REQUIRE(seen.has_value());
  BOOST_TEST(seen->common_name() == "server");
  BOOST_TEST(!pair.tls_client().resumed());
}

BOOST_FIXTURE_TEST_CASE(preference_of_the_server_decides_the_protocol, loop) {
  const auto server = serving();
  const auto client =
      connecting({.server_name = "localhost", .alpn = {"http/1.1", "spdy/3", "h2"}});
  stream_pair pair(context, *server, *client);
  pair.establish();
  BOOST_TEST(pair.server->protocol() == "h2");
}

BOOST_FIXTURE_TEST_CASE(client_of_http_11_only_gets_it, loop) {
  const auto server = serving();
  const auto client = connecting({.server_name = "localhost", .alpn = {"http/1.1"}});
  stream_pair pair(context, *server, *client);
  pair.establish();
  BOOST_TEST(pair.server->protocol() == "http/1.1");
  BOOST_TEST(pair.client->protocol() == "http/1.1");
}

BOOST_FIXTURE_TEST_CASE(client_without_alpn_gets_no_protocol, loop) {
  const auto server = serving();
  const auto client = connecting({.server_name = "localhost", .alpn = {}});
  stream_pair pair(context, *server, *client);
  pair.establish();
  BOOST_TEST(pair.server->protocol().empty());
}

BOOST_FIXTURE_TEST_CASE(client_of_other_protocols_only_is_rejected, loop) {
  const auto server = serving();
  const auto client = connecting({.server_name = "localhost", .alpn = {"spdy/3"}});
  stream_pair pair(context, *server, *client);
  pair.handshake();
  BOOST_TEST(is_openssl(pair.at_server.error));
  BOOST_TEST(pair.at_client.error.message().find("no application protocol") != std::string::npos,
             pair.at_client.error.message());
}

BOOST_FIXTURE_TEST_CASE(mutual_tls_shows_the_verified_client, loop) {
  const auto server = serving({.require_client_certificate = true});
  const auto client = connecting_as(the_pki().client);
  stream_pair pair(context, *server, *client);
  pair.establish();
  const auto seen = rw::tls::certificate::from_der(pair.server->peer_certificate());
  BOOST_REQUIRE(seen.has_value());
  BOOST_TEST(seen->common_name() == "runtime-1");
}

BOOST_FIXTURE_TEST_CASE(mutual_tls_refuses_a_client_without_certificate, loop) {
  const auto server = serving({.require_client_certificate = true});
  const auto client = connecting();
  stream_pair pair(context, *server, *client);
  pair.handshake();
  BOOST_TEST(is_openssl(pair.at_server.error));
  BOOST_TEST(pair.at_server.error.message() == "peer did not return a certificate");
  BOOST_TEST(pair.server->peer_certificate().empty());
  // The client is done before the server has judged: it learns the reason from its first read.
  const auto end = stream_pair::read_end(*pair.client);
  BOOST_TEST(end.error.message().find("certificate required") != std::string::npos,
             end.error.message());
}

BOOST_FIXTURE_TEST_CASE(mutual_tls_refuses_a_foreign_certificate, loop) {
  const auto server = serving({.require_client_certificate = true});
  const auto client = connecting_as(the_pki().foreign);
  stream_pair pair(context, *server, *client);
  // A client that knows which CAs are accepted still shows what it has.
  pair.handshake();
  BOOST_TEST((pair.at_server.error.category() == verify_category()));
  BOOST_TEST(pair.at_server.error.message().find("issuer") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(mutual_tls_refuses_a_server_certificate_as_client, loop) {
  const auto server = serving({.require_client_certificate = true});
  const auto client = connecting_as(the_pki().server);
  stream_pair pair(context, *server, *client);
  pair.handshake();
  BOOST_TEST((pair.at_server.error.category() == verify_category()));
}

BOOST_FIXTURE_TEST_CASE(client_that_is_only_asked_may_have_no_certificate_or_a_good_one, loop) {
  const auto server = serving({.request_client_certificate = true});
  {
    const auto nobody = connecting();
    stream_pair pair(context, *server, *nobody);
    pair.establish();
    BOOST_TEST(pair.server->peer_certificate().empty());
  }
  {
    const auto somebody = connecting_as(the_pki().client);
    stream_pair pair(context, *server, *somebody);
    pair.establish();
    const auto seen = rw::tls::certificate::from_der(pair.server->peer_certificate());
    BOOST_REQUIRE(seen.has_value());
    BOOST_TEST(seen->common_name() == "runtime-1");
  }
  const auto stranger = connecting_as(the_pki().foreign);
  stream_pair pair(context, *server, *stranger);
  pair.handshake();
  BOOST_TEST((pair.at_server.error.category() == verify_category()));
}

/// Makes the server's end of a connection speak no newer version.
void limit_to_tls_12(stream_pair& pair) {
  SSL_set_min_proto_version(pair.tls_server().native(), TLS1_2_VERSION);
  SSL_set_max_proto_version(pair.tls_server().native(), TLS1_2_VERSION);
}

BOOST_FIXTURE_TEST_CASE(tls_12_is_spoken_only_by_clients_that_allow_it, loop) {
  const auto server = serving({.request_client_certificate = true});
  {
    const auto strict = connecting_as(the_pki().client);
    stream_pair pair(context, *server, *strict);
    limit_to_tls_12(pair);
    pair.handshake();
    BOOST_TEST(is_openssl(pair.at_client.error));
  }
  const auto lenient =
      good(make_client_transport(holding(the_pki().client, the_pki().ca.certificate_pem()),
                                 {.server_name = "kcp.example.com", .least = version::tls_1_2}));
  for (const bool again : {false, true}) {
    stream_pair pair(context, *server, *lenient);
    limit_to_tls_12(pair);
    pair.establish();
    BOOST_TEST(SSL_version(pair.tls_client().native()) == TLS1_2_VERSION);
    BOOST_TEST(pair.client->protocol() == "h2");
    BOOST_TEST(pair.tls_client().resumed() == again);
    const auto seen = rw::tls::certificate::from_der(pair.server->peer_certificate());
    BOOST_REQUIRE(seen.has_value());
    BOOST_TEST(seen->common_name() == "runtime-1");
    const std::string much(300'000, 'x');
    BOOST_TEST((stream_pair::pass(*pair.client, *pair.server, much) == much));
    BOOST_TEST((stream_pair::pass(*pair.server, *pair.client, much) == much));
  }
  // A server that can do better is spoken to in TLS 1.3.
  stream_pair pair(context, *server, *lenient);
  pair.establish();
  BOOST_TEST(SSL_version(pair.tls_client().native()) == TLS1_3_VERSION);
}

BOOST_FIXTURE_TEST_CASE(client_that_skips_verification_has_no_peer_certificate, loop) {
  const auto server = serving();
  for (const auto* name : {"", "no.such.name", "192.0.2.1"}) {
    const auto client =
        good(make_client_transport(std::make_shared<credentials>(material::none()),
                                   {.server_name = name, .insecure_skip_verify = true}));
    stream_pair pair(context, *server, *client);
    pair.establish();
    BOOST_TEST(pair.client->peer_certificate().empty());
  }
}

BOOST_FIXTURE_TEST_CASE(without_a_ca_bundle_the_systems_authorities_may_be_trusted, loop) {
  const scratch files;
  files.write("system.pem", the_pki().ca.certificate_pem());
  // Read once in a process, and by nobody but this test.
  ::setenv("SSL_CERT_FILE", files.in("system.pem").c_str(), 1);
  const auto server = serving();
  const auto client =
      good(make_client_transport(std::make_shared<credentials>(material::none()),
                                 {.server_name = "kcp.example.com", .trust_system = true}));
  ::unsetenv("SSL_CERT_FILE");
  stream_pair pair(context, *server, *client);
  pair.establish();

  const auto stranger = good(the_pki().stranger.issue(
      {.common_name = "server", .dns_names = {"kcp.example.com"}, .server_auth = true}));
  const auto other = good(make_server_transport(holding(stranger)));
  stream_pair refused(context, *other, *client);
  refused.handshake();
  BOOST_TEST((refused.at_client.error.category() == verify_category()));

  const auto wrong = good(make_client_transport(std::make_shared<credentials>(material::none()),
                                                {.server_name = "other", .trust_system = true}));
  stream_pair misnamed(context, *server, *wrong);
  misnamed.handshake();
  BOOST_TEST((misnamed.at_client.error.category() == verify_category()));
}

BOOST_FIXTURE_TEST_CASE(bundle_wins_over_the_systems_authorities, loop) {
  const auto server = serving();
  const auto client =
      good(make_client_transport(trusting(the_pki().stranger.certificate_pem()),
                                 {.server_name = "kcp.example.com", .trust_system = true}));
  stream_pair pair(context, *server, *client);
  pair.handshake();
  BOOST_TEST((pair.at_client.error.category() == verify_category()));
}

BOOST_FIXTURE_TEST_CASE(server_of_another_ca_is_rejected, loop) {
  const auto server = serving();
  const auto client = good(make_client_transport(trusting(the_pki().stranger.certificate_pem()),
                                                 {.server_name = "kcp.example.com"}));
  stream_pair pair(context, *server, *client);
  pair.handshake();
  BOOST_TEST((pair.at_client.error.category() == verify_category()));
  BOOST_TEST(is_openssl(pair.at_server.error));
}

BOOST_FIXTURE_TEST_CASE(server_of_another_name_is_rejected, loop) {
  const auto server = serving();
  for (const auto* name : {"other.example.com", "127.0.0.2", "server", "2001:db8::1"}) {
    const auto client = connecting({.server_name = name});
    stream_pair pair(context, *server, *client);
    pair.handshake();
    BOOST_TEST((pair.at_client.error.category() == verify_category()), name);
    BOOST_TEST(pair.at_client.error.message().find("mismatch") != std::string::npos,
               pair.at_client.error.message());
  }
}

BOOST_FIXTURE_TEST_CASE(server_is_known_by_its_address_too, loop) {
  const auto server = serving();
  const auto client = connecting({.server_name = "127.0.0.1"});
  stream_pair pair(context, *server, *client);
  pair.establish();
  BOOST_TEST(SSL_get_servername(pair.tls_server().native(), TLSEXT_NAMETYPE_host_name) == nullptr);
}

BOOST_FIXTURE_TEST_CASE(expired_server_is_rejected, loop) {
  const auto now = std::chrono::system_clock::now();
  const auto old = good(the_pki().ca.issue({.common_name = "old",
                                            .dns_names = {"kcp.example.com"},
                                            .server_auth = true,
                                            .not_before = now - std::chrono::hours(2),
                                            .validity = std::chrono::hours(1)}));
  const auto server = good(make_server_transport(holding(old)));
  const auto client = connecting();
  stream_pair pair(context, *server, *client);
  pair.handshake();
  BOOST_TEST(pair.at_client.error.message().find("expired") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(chain_with_an_intermediate_is_sent_whole, loop) {
  const auto between = good(the_pki().ca.intermediate({.common_name = "between"}));
  auto leaf = good(between.issue(
      {.common_name = "deep", .dns_names = {"kcp.example.com"}, .server_auth = true}));
  leaf.certificate += between.certificate_pem();
  const auto server = good(make_server_transport(holding(leaf)));
  const auto client = connecting();
  stream_pair pair(context, *server, *client);
  pair.establish();
}

BOOST_FIXTURE_TEST_CASE(root_is_not_sent_and_an_intermediate_of_the_bundle_is, loop) {
  const auto chain_length = [this](const rw::tls::issuer& of, const std::string& bundle) {
    const auto leaf =
        good(of.issue({.common_name = "x", .dns_names = {"kcp.example.com"}, .server_auth = true}));
    const auto own = good(credentials::from_text({leaf.certificate, leaf.key, bundle}));
    const auto server = good(make_server_transport(own, {.request_client_certificate = true}));
    const auto client = connecting();
    stream_pair pair(context, *server, *client);
    pair.establish();
    return sk_X509_num(SSL_get_peer_cert_chain(pair.tls_client().native()));
  };
  const auto& root = the_pki().ca;
  const auto between = good(root.intermediate({.common_name = "between"}));
  BOOST_TEST(chain_length(root, root.certificate_pem()) == 1);
  BOOST_TEST(chain_length(between, root.certificate_pem() + between.certificate_pem()) == 2);
}

BOOST_FIXTURE_TEST_CASE(authority_may_serve_with_its_own_certificate, loop) {
  const auto root =
      good(rw::tls::issuer::create({.common_name = "root", .dns_names = {"kcp.example.com"}}));
  const auto server = good(make_server_transport(holding(root.own())));
  const auto client = good(
      make_client_transport(trusting(root.certificate_pem()), {.server_name = "kcp.example.com"}));
  stream_pair pair(context, *server, *client);
  pair.establish();
}

BOOST_FIXTURE_TEST_CASE(second_connection_resumes_the_session, loop) {
  const auto server = serving({.require_client_certificate = true});
  const auto client = connecting_as(the_pki().client);
  {
    stream_pair first(context, *server, *client);
    first.establish();
    BOOST_TEST(!first.tls_server().resumed());
  }  // gone without close_notify, which does not spoil the ticket
  stream_pair second(context, *server, *client);
  second.establish();
  BOOST_TEST(second.tls_client().resumed());
  BOOST_TEST(second.tls_server().resumed());
  BOOST_TEST(second.client->protocol() == "h2");
  // The identity is that of the session.
  const auto seen = rw::tls::certificate::from_der(second.server->peer_certificate());
  BOOST_TEST(seen->common_name() == "runtime-1");
  BOOST_TEST(!second.client->peer_certificate().empty());
}

BOOST_FIXTURE_TEST_CASE(ticket_is_used_once, loop) {
  const auto server = serving();
  const auto client = connecting();
  stream_pair(context, *server, *client).establish();
  stream_pair second(context, *server, *client);
  stream_pair third(context, *server, *client);
  second.establish();
  third.establish();
  BOOST_TEST(second.tls_client().resumed());
  BOOST_TEST(!third.tls_client().resumed());
}

BOOST_FIXTURE_TEST_CASE(resumption_can_be_switched_off_at_either_end, loop) {
  const auto server = serving();
  const auto forgetful = connecting({.server_name = "localhost", .resume_sessions = false});
  stream_pair(context, *server, *forgetful).establish();
  stream_pair second(context, *server, *forgetful);
  second.establish();
  BOOST_TEST(!second.tls_client().resumed());

  const auto ticketless = serving({.tickets = 0});
  const auto client = connecting();
  stream_pair(context, *ticketless, *client).establish();
  stream_pair third(context, *ticketless, *client);
  third.establish();
  BOOST_TEST(!third.tls_client().resumed());
}

BOOST_FIXTURE_TEST_CASE(new_material_serves_new_connections_and_ends_old_sessions, loop) {
  const auto& pki = the_pki();
  const auto at_server = holding(pki.server, pki.ca.certificate_pem());
  const auto server = good(make_server_transport(at_server));
  const auto client = connecting();
  stream_pair first(context, *server, *client);
  first.establish();

  const auto next = good(
      pki.ca.issue({.common_name = "next", .dns_names = {"kcp.example.com"}, .server_auth = true}));
  at_server->replace(
      good(material::from_text({.certificate = next.certificate, .key = next.key, .ca = {}})));
  stream_pair second(context, *server, *client);
  second.establish();
  BOOST_TEST(!second.tls_client().resumed());
  BOOST_TEST(rw::tls::certificate::from_der(second.client->peer_certificate())->common_name() ==
             "next");
  // The connection from before goes on.
  BOOST_TEST(stream_pair::pass(*first.client, *first.server, "still here") == "still here");
}

BOOST_FIXTURE_TEST_CASE(handshake_fails_when_the_ca_of_its_client_is_removed_meanwhile, loop) {
  const auto& pki = the_pki();
  for (const bool stays : {true, false}) {
    const auto own = holding(pki.server, pki.ca.certificate_pem());
    const auto server = good(make_server_transport(own, {.require_client_certificate = true}));
    const auto client = connecting_as(pki.client);
    stream_pair pair(context, *server, *client);
    BOOST_TEST(!pair.client->handshake().error);
    const auto other = pki.stranger.certificate_pem();
    own->replace(
        good(material::from_text({.certificate = pki.server.certificate,
                                  .key = pki.server.key,
                                  .ca = stays ? other + pki.ca.certificate_pem() : other})));
    pair.handshake();
    BOOST_TEST((pair.at_server.error == error::untrusted) == !stays);
    BOOST_TEST(!pair.at_server.error == stays);
  }
}

BOOST_FIXTURE_TEST_CASE(client_drops_its_sessions_with_its_material, loop) {
  const auto& pki = the_pki();
  const auto server = serving();
  const auto at_client = trusting(pki.ca.certificate_pem());
  const auto client = good(make_client_transport(at_client, {.server_name = "kcp.example.com"}));
  stream_pair(context, *server, *client).establish();
  at_client->replace(good(
      material::from_text({.certificate = {}, .key = {}, .ca = pki.stranger.certificate_pem()})));
  stream_pair second(context, *server, *client);
  second.handshake();
  BOOST_TEST((second.at_client.error.category() == verify_category()));
}

BOOST_AUTO_TEST_CASE(transport_without_the_material_of_its_role_is_rejected_in_words) {
  const auto& pki = the_pki();
  const auto ca_only = trusting(pki.ca.certificate_pem());
  BOOST_TEST(make_server_transport(ca_only).error().code ==
             make_error_code(error::missing_material));
  const auto no_ca = holding(pki.server);
  BOOST_TEST(make_server_transport(no_ca, {.require_client_certificate = true}).error().code ==
             make_error_code(error::missing_material));
  BOOST_TEST(make_client_transport(no_ca, {.server_name = "x"}).error().code ==
             make_error_code(error::missing_material));
  BOOST_TEST(make_server_transport(no_ca, {.request_client_certificate = true}).error().code ==
             make_error_code(error::missing_material));
  BOOST_TEST(make_client_transport(ca_only, {}).error().code ==
             make_error_code(error::bad_request));
  const auto nothing = std::make_shared<credentials>(material::none());
  BOOST_TEST(make_client_transport(nothing, {.server_name = "x"}).error().code ==
             make_error_code(error::missing_material));
  BOOST_TEST(make_server_transport(nothing).error().code ==
             make_error_code(error::missing_material));
}

BOOST_AUTO_TEST_CASE(transports_serve_several_threads_while_the_material_changes) {
  const auto& pki = the_pki();
  const auto at_server = holding(pki.server, pki.ca.certificate_pem());
  const auto at_client = trusting(pki.ca.certificate_pem());
  const auto server = good(make_server_transport(at_server));
  const auto client = good(make_client_transport(at_client, {.server_name = "localhost"}));
  std::atomic<int> made{0};
  const auto work = [&] {
    boost::asio::io_context context{1};
    for (int i = 0; i < 20; ++i) {
      stream_pair pair(context, *server, *client);
      pair.handshake();
      if (!pair.at_client.error && !pair.at_server.error) ++made;
    }
  };
  std::thread one(work);
  std::thread two(work);
  for (int i = 0; i < 20; ++i) {
    at_server->replace(good(material::from_text({.certificate = pki.server.certificate,
                                                 .key = pki.server.key,
                                                 .ca = pki.ca.certificate_pem()})));
    at_client->replace(
        good(material::from_text({.certificate = {}, .key = {}, .ca = pki.ca.certificate_pem()})));
  }
  one.join();
  two.join();
  BOOST_TEST(made.load() == 40);
}

BOOST_AUTO_TEST_SUITE_END()
