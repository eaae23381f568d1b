#include "rw/tls/reload.hpp"

#include "rw/tls/directory_watch.hpp"
#include "rw/tls/files.hpp"
#include "rw/tls/quiet_period.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/tls/pki.hpp"
#include "tests/unit/tls/scratch.hpp"
#include <future>

BOOST_AUTO_TEST_SUITE(reload)

using namespace rw::tls;
using namespace rw::tls::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

key_pair issued(const std::string& name) {
  return good(the_pki().ca.issue({.common_name = name, .server_auth = true, .client_auth = true}));
}

/// A directory as kubelet keeps it: files are links into `..data`, which is a link that is swapped.
class secret_volume {
 public:
  explicit secret_volume(const scratch& dir) : dir_(dir) {}

  void publish(const key_pair& pair) {
    const auto version = "..version-" + std::to_string(++version_);
    dir_.write(version + "/tls.crt", pair.certificate);
    dir_.write(version + "/tls.key", pair.key);
    dir_.write(version + "/ca.crt", the_pki().ca.certificate_pem());
    const auto old = version_ > 1 ? fs::read_symlink(dir_.path() / "..data") : fs::path();
    fs::create_symlink(version, dir_.path() / "..data_tmp");
    fs::rename(dir_.path() / "..data_tmp", dir_.path() / "..data");
    if (version_ > 1) {
      fs::remove_all(dir_.path() / old);
      return;
    }
    for (const auto* name : {"tls.crt", "tls.key", "ca.crt"}) {
      fs::create_symlink(fs::path("..data") / name, dir_.path() / name);
    }
  }

 private:
  const scratch& dir_;
  int version_ = 0;
};

material_files files_in(const scratch& dir) {
  return {.certificate = dir.in("tls.crt"), .key = dir.in("tls.key"), .ca = dir.in("ca.crt")};
}

/// A reloader at work on an io_context that the test drives.
class running {
 public:
  explicit running(const material_files& files, reload_options options = quick())
      : held_(good(credentials::load(files))),
        reloader_(context_.get_executor(), held_, files, log_, options) {
    reloader_.on_attempt([this](const result<void>& outcome) {
      last_ = outcome ? std::string() : outcome.error().message();
    });
    boost::asio::co_spawn(
        context_, reloader_.run(),
        boost::asio::bind_cancellation_slot(stop_.slot(), [this](std::exception_ptr failed) {
          ended_ = true;
          BOOST_TEST(!failed);
        }));
    context_.poll();  // it watches now
  }

  ~running() {
    stop_.emit(boost::asio::cancellation_type::total);
    until([this] { return ended_; });
  }

  template <class Condition>
  void until(Condition holds) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!holds()) {
      BOOST_REQUIRE_MESSAGE(std::chrono::steady_clock::now() < end,
                            "the condition awaited did not come");
      context_.run_one_until(end);
    }
  }

  void until_serving(const std::string& name) {
    until([&] { return serving() == name; });
  }

  std::string serving() const { return held_->current()->leaf()->common_name(); }
  const std::string& last() const { return last_; }
  const std::string& logged() const { return logged_; }
  const credentials& held() const { return *held_; }
  reloader& it() { return reloader_; }

  static reload_options quick() { return {.quiet = 10ms, .quiet_limit = 100ms, .poll = 60s}; }

 private:
  boost::asio::io_context context_{1};
  std::string logged_;
  rw::core::logger log_{rw::core::log_level::info,
                        [this](std::string_view line) { logged_ += line; }};
  std::shared_ptr<credentials> held_;
  reloader reloader_;
  boost::asio::cancellation_signal stop_;
  std::string last_;
  bool ended_ = false;
};

}  // namespace

BOOST_AUTO_TEST_CASE(swap_by_kubelet_is_seen_again_and_again) {
  const scratch dir;
  secret_volume volume(dir);
  volume.publish(issued("v1"));
  running reload(files_in(dir));
  BOOST_TEST(reload.serving() == "v1");
  BOOST_TEST(reload.held().generation() == 1U);
  for (const auto* name : {"v2", "v3", "v4"}) {
    volume.publish(issued(name));
    reload.until_serving(name);
  }
  BOOST_TEST(reload.held().generation() == 4U);
  BOOST_TEST(reload.it().successes() == 3U);
  BOOST_TEST(reload.it().failures() == 0U);
}

BOOST_AUTO_TEST_CASE(files_renamed_into_place_are_seen) {
  const scratch dir;
  dir.write("ca.crt", the_pki().ca.certificate_pem());
  BOOST_REQUIRE(write_files(dir.path(), "tls", issued("v1")).has_value());
  running reload(files_in(dir));
  BOOST_REQUIRE(write_files(dir.path(), "tls", issued("v2")).has_value());
  reload.until_serving("v2");
}

BOOST_AUTO_TEST_CASE(files_behind_links_into_other_directories_are_seen) {
  const scratch dir;
  BOOST_REQUIRE(write_files(dir.path() / "real", "tls", issued("v1")).has_value());
  fs::create_directory(dir.path() / "links");
  fs::create_symlink("../real/tls.crt", dir.path() / "links/tls.crt");
  fs::create_symlink(dir.path() / "real/tls.key", dir.path() / "links/tls.key");
  running reload(
      {.certificate = dir.in("links/tls.crt"), .key = dir.in("links/tls.key"), .ca = {}});
  BOOST_REQUIRE(write_files(dir.path() / "real", "tls", issued("v2")).has_value());
  reload.until_serving("v2");
}

BOOST_AUTO_TEST_CASE(directory_that_is_a_link_may_be_swapped) {
  const scratch dir;
  BOOST_REQUIRE(write_files(dir.path() / "a", "tls", issued("v1")).has_value());
  BOOST_REQUIRE(write_files(dir.path() / "b", "tls", issued("v2")).has_value());
  fs::create_directory_symlink("a", dir.path() / "current");
  running reload(
      {.certificate = dir.in("current/tls.crt"), .key = dir.in("current/tls.key"), .ca = {}});
  fs::create_directory_symlink("b", dir.path() / "next");
  fs::rename(dir.path() / "next", dir.path() / "current");
  reload.until_serving("v2");
  // And what it leads to now is watched.
  BOOST_REQUIRE(write_files(dir.path() / "b", "tls", issued("v3")).has_value());
  reload.until_serving("v3");
}

BOOST_AUTO_TEST_CASE(half_written_certificate_is_rejected_and_the_whole_one_taken) {
  const scratch dir;
  BOOST_REQUIRE(write_files(dir.path(), "tls", issued("v1")).has_value());
  running reload({.certificate = dir.in("tls.crt"), .key = dir.in("tls.key"), .ca = {}});
  const auto next = issued("v2");
  dir.write("tls.key", next.key);
  dir.write("tls.crt", next.certificate.substr(0, next.certificate.size() / 2));
  reload.until([&] { return reload.last().find("incomplete") != std::string::npos; });
  BOOST_TEST(reload.serving() == "v1");
  BOOST_TEST(reload.last().find(dir.in("tls.crt")) != std::string::npos);
  BOOST_TEST(reload.logged().find("rejected") != std::string::npos);
  BOOST_TEST(reload.it().failures() >= 1U);
  dir.write("tls.crt", next.certificate);
  reload.until_serving("v2");
  BOOST_TEST(reload.last().empty());
}

BOOST_AUTO_TEST_CASE(key_that_does_not_belong_is_rejected_until_it_does) {
  const scratch dir;
  BOOST_REQUIRE(write_files(dir.path(), "tls", issued("v1")).has_value());
  running reload({.certificate = dir.in("tls.crt"), .key = dir.in("tls.key"), .ca = {}});
  const auto next = issued("v2");
  dir.write("tls.crt", next.certificate);
  reload.until([&] { return reload.last().find("does not belong") != std::string::npos; });
  BOOST_TEST(reload.serving() == "v1");
  BOOST_TEST(reload.last().find(dir.in("tls.key")) != std::string::npos);
  BOOST_TEST(reload.last().find("CN=v2") != std::string::npos);
  dir.write("tls.key", next.key);
  reload.until_serving("v2");
}

BOOST_AUTO_TEST_CASE(missing_file_is_rejected_until_it_is_back) {
  const scratch dir;
  const auto first = issued("v1");
  BOOST_REQUIRE(write_files(dir.path(), "tls", first).has_value());
  running reload({.certificate = dir.in("tls.crt"), .key = dir.in("tls.key"), .ca = {}});
  fs::remove(dir.path() / "tls.key");
  reload.until([&] { return reload.it().failures() == 1U; });
  BOOST_TEST(reload.last().find("No such file") != std::string::npos);
  BOOST_TEST(reload.serving() == "v1");
  // Back to what is in use: good again, and nothing is swapped.
  dir.write("tls.key", first.key);
  reload.until([&] { return reload.it().successes() == 1U; });
  BOOST_TEST(reload.held().generation() == 1U);
}

BOOST_AUTO_TEST_CASE(directory_that_is_removed_and_made_again_is_watched_again) {
  const scratch dir;
  BOOST_REQUIRE(write_files(dir.path() / "d", "tls", issued("v1")).has_value());
  running reload({.certificate = dir.in("d/tls.crt"), .key = dir.in("d/tls.key"), .ca = {}});
  fs::remove_all(dir.path() / "d");
  reload.until([&] { return reload.it().failures() >= 1U; });
  BOOST_REQUIRE(write_files(dir.path() / "d", "tls", issued("v2")).has_value());
  reload.until_serving("v2");
}

BOOST_AUTO_TEST_CASE(ca_bundle_alone_is_reloaded) {
  const scratch dir;
  dir.write("ca.crt", the_pki().ca.certificate_pem());
  running reload({.certificate = {}, .key = {}, .ca = dir.in("ca.crt")});
  BOOST_TEST(!reload.held().current()->leaf().has_value());
  dir.write("ca.crt", the_pki().stranger.certificate_pem() + the_pki().ca.certificate_pem());
  reload.until([&] { return reload.held().current()->ca()->anchors().size() == 2U; });
  dir.write("ca.crt", "");
  reload.until([&] { return reload.last().find("empty") != std::string::npos; });
  BOOST_TEST(reload.held().current()->ca()->anchors().size() == 2U);
}

BOOST_AUTO_TEST_CASE(expired_certificate_is_used_and_reported) {
  const scratch dir;
  BOOST_REQUIRE(write_files(dir.path(), "tls", issued("v1")).has_value());
  running reload({.certificate = dir.in("tls.crt"), .key = dir.in("tls.key"), .ca = {}});
  const auto old = good(the_pki().ca.issue(
      {.common_name = "old", .not_before = std::chrono::system_clock::now() - 2h, .validity = 1h}));
  BOOST_REQUIRE(write_files(dir.path(), "tls", old).has_value());
  reload.until_serving("old");
  BOOST_TEST(reload.logged().find("expired") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(certificate_that_expires_in_use_is_reported_once) {
  const scratch dir;
  const auto pair = good(the_pki().ca.issue({.common_name = "short",
                                             .not_before = std::chrono::system_clock::now() - 1h,
                                             .validity = 1h + 1s}));
  BOOST_REQUIRE(write_files(dir.path(), "tls", pair).has_value());
  running reload({.certificate = dir.in("tls.crt"), .key = dir.in("tls.key"), .ca = {}},
                 {.quiet = 10ms, .quiet_limit = 100ms, .poll = 20ms});
  BOOST_TEST(reload.logged().find("expired") == std::string::npos);
  reload.until([&] { return reload.logged().find("expired") != std::string::npos; });
  reload.it().check();
  BOOST_TEST(reload.logged().find("expired") == reload.logged().rfind("expired"));
}

BOOST_AUTO_TEST_CASE(certificate_that_is_expired_at_the_start_is_reported) {
  const scratch dir;
  const auto pair = good(the_pki().ca.issue(
      {.common_name = "old", .not_before = std::chrono::system_clock::now() - 2h, .validity = 1h}));
  BOOST_REQUIRE(write_files(dir.path(), "tls", pair).has_value());
  const running reload({.certificate = dir.in("tls.crt"), .key = dir.in("tls.key"), .ca = {}});
  BOOST_TEST(reload.logged().find("expired") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(without_notices_the_poll_finds_the_change) {
  const scratch dir;
  BOOST_REQUIRE(write_files(dir.path(), "tls", issued("v1")).has_value());
  // Notices are put off for longer than the test lives, so that only the poll is left.
  running reload({.certificate = dir.in("tls.crt"), .key = dir.in("tls.key"), .ca = {}},
                 {.quiet = 1h, .quiet_limit = 1h, .poll = 20ms});
  BOOST_REQUIRE(write_files(dir.path(), "tls", issued("v2")).has_value());
  reload.until_serving("v2");
}

BOOST_AUTO_TEST_CASE(change_before_the_watch_began_is_found) {
  const scratch dir;
  const material_files files{.certificate = dir.in("tls.crt"), .key = dir.in("tls.key"), .ca = {}};
  BOOST_REQUIRE(write_files(dir.path(), "tls", issued("v1")).has_value());
  const auto held = good(credentials::load(files));
  BOOST_REQUIRE(write_files(dir.path(), "tls", issued("v2")).has_value());
  boost::asio::io_context context{1};
  rw::core::logger log(rw::core::log_level::error, [](std::string_view) {});
  reloader late(context.get_executor(), held, files, log);
  BOOST_TEST(late.check());
  BOOST_TEST(!late.check());
  BOOST_TEST(held->current()->leaf()->common_name() == "v2");
}

BOOST_AUTO_TEST_CASE(material_is_refused_with_the_name_of_the_part) {
  const auto refusal = [](const material_text& text) {
    const auto made = material::from_text(text);
    BOOST_REQUIRE(made.has_error());
    return made.error();
  };
  const auto& pki = the_pki();
  BOOST_TEST(refusal({}).code == make_error_code(error::missing_material));
  BOOST_TEST(refusal({.certificate = pki.server.certificate, .key = {}, .ca = {}}).code ==
             make_error_code(error::missing_material));
  BOOST_TEST(refusal({.certificate = {}, .key = pki.server.key, .ca = {}}).code ==
             make_error_code(error::missing_material));
  BOOST_TEST(
      refusal({.certificate = pki.server.certificate, .key = "no key", .ca = {}}).message() ==
      "key: not a readable private key");
  BOOST_TEST(refusal({.certificate = {}, .key = {}, .ca = "nothing"}).message() ==
             "CA bundle: holds no PEM certificate");
  const std::string encrypted =
      "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
      "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgAAAAAAAAAAAICCAAw\n"
      "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEAAAAAAAAAAAAAAAAAAAAAAEgZAA\n"
      "-----END ENCRYPTED PRIVATE KEY-----\n";
  const auto code =
      refusal({.certificate = pki.server.certificate, .key = encrypted, .ca = {}}).code;
  BOOST_TEST((code == error::encrypted_key || code == error::malformed_key));
}

BOOST_AUTO_TEST_CASE(key_file_that_others_may_read_is_rejected) {
  const scratch dir;
  dir.write("tls.key", "key");
  BOOST_TEST(read_key_file(dir.in("tls.key")).value() == "key");
  for (const auto mode : {fs::perms::group_read, fs::perms::others_read, fs::perms::group_write}) {
    fs::permissions(dir.in("tls.key"), fs::perms::owner_read | mode);
    const auto read = read_key_file(dir.in("tls.key"));
    BOOST_REQUIRE(read.has_error());
    BOOST_TEST(read.error().code == make_error_code(error::exposed_key));
    BOOST_TEST(read.error().message().ends_with("private key; chmod 600 it"));
  }
  // A certificate is no secret.
  BOOST_TEST(read_file(dir.in("tls.key")).value() == "key");
  dir.write("tls.crt", the_pki().server.certificate);
  dir.write("tls.key", the_pki().server.key);
  fs::permissions(dir.in("tls.key"), fs::perms::owner_read | fs::perms::others_read);
  const auto loaded =
      material::load({.certificate = dir.in("tls.crt"), .key = dir.in("tls.key"), .ca = {}});
  BOOST_TEST(loaded.error().message() ==
             dir.in("tls.key") +
                 ": mode 0404 lets others than its owner use the private key; chmod 600 it");
}

BOOST_AUTO_TEST_CASE(path_to_a_file_names_each_link) {
  const scratch dir;
  const auto root = fs::canonical(dir.path());
  fs::create_directories(root / "v1");
  dir.write("v1/f", "x");
  fs::create_directory_symlink("v1", root / "..data");
  fs::create_symlink("..data/f", root / "f");
  const auto entries = entries_on_the_way((root / "f").string());
  const std::set<watched_entry> expected{
      {root.string(), "f"}, {root.string(), "..data"}, {(root / "v1").string(), "f"}};
  BOOST_TEST((entries == expected));
  // Links in a circle come to an end, and what is missing is watched for.
  fs::create_symlink("b", root / "a");
  fs::create_symlink("a", root / "b");
  BOOST_TEST(entries_on_the_way((root / "a").string()).size() == 2U);
  BOOST_TEST((entries_on_the_way((root / "none/f").string()) ==
              std::set<watched_entry>{{root.string(), "none"}}));
}

BOOST_AUTO_TEST_CASE(burst_is_awaited_but_not_indefinitely) {
  quiet_period burst(50ms, 500ms);
  const quiet_period::time start{};
  BOOST_TEST(!burst.due().has_value());
  burst.changed(start);
  BOOST_TEST((burst.due() == start + 50ms));
  for (auto at = 0ms; at <= 490ms; at += 10ms) burst.changed(start + at);
  BOOST_TEST((burst.due() == start + 500ms));
  burst.reset();
  BOOST_TEST(!burst.due().has_value());
  burst.changed(start + 600ms);
  BOOST_TEST((burst.due() == start + 650ms));
}

BOOST_AUTO_TEST_SUITE_END()
