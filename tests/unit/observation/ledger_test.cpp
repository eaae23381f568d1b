#include "reactors/observation/ledger.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <string>

BOOST_AUTO_TEST_SUITE(ledger)

using namespace rw::observation;

namespace {

const rw::managed_watch specs{"klm", {"op", "*", "kymas"}, "spec", {{"l", "1"}}};
const rw::managed_watch empty{"other", {"", "v1", "configmaps"}, "spec", {}};

std::string sample() {
  rw::observation::observed_objects objects;
  objects.add(empty);
  auto& table = objects.add(specs);
  objects.remember(table, "ns/a", 10);
  objects.remember(table, "cluster-scoped", 20);
  return encode_ledger(objects);
}

std::string reason(std::string_view bytes) {
  const auto read = decode_ledger(bytes);
  return read ? "" : read.error().message;
}

struct directory {
  directory() {
    std::string name = (std::filesystem::temp_directory_path() / "rw-ledger-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~directory() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

}  // namespace

BOOST_AUTO_TEST_CASE(ledger_is_read_as_it_was_written) {
  const auto read = decode_ledger(sample());
  BOOST_REQUIRE(read);
  BOOST_TEST(read->size() == 2U);
  BOOST_TEST(read->at(empty).empty());
  auto objects = read->at(specs);
  std::ranges::sort(objects);
  BOOST_TEST(objects.at(0).first == "cluster-scoped");
  BOOST_TEST(objects.at(1).first == "ns/a");
  BOOST_TEST(objects.at(1).second == 10U);
}

BOOST_AUTO_TEST_CASE(damaged_ledger_is_rejected) {
  const auto good = sample();
  for (std::size_t size = 0; size < good.size(); ++size) {
    BOOST_TEST(reason(std::string_view(good).substr(0, size)) != "");
  }
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto bytes = good;
    bytes[i] = static_cast<char>(bytes[i] + 1);
    BOOST_TEST(reason(bytes) != "");
  }
  BOOST_TEST(reason(good + "x") == "its checksum is wrong");
  BOOST_TEST(reason("runtime-watcher ledger 2\n" + good) == "it has another version");
}

BOOST_AUTO_TEST_CASE(file_is_replaced_as_a_whole) {
  const directory in;
  const auto file = (in.path / "ledger").string();
  BOOST_TEST(read_ledger(file)->empty(), "a missing one has no objects");
  BOOST_TEST(write_ledger(file, sample()) == "");
  BOOST_TEST(read_ledger(file)->size() == 2U);
  BOOST_TEST(write_ledger(file, "short") == "");
  BOOST_TEST(read_ledger(file).error().message == "it has another version");
  const auto files = std::distance(std::filesystem::directory_iterator(in.path), {});
  BOOST_TEST(files == 1);
}

BOOST_AUTO_TEST_CASE(file_that_cannot_be_used_is_an_error) {
  const directory in;
  BOOST_TEST(write_ledger((in.path / "missing/ledger").string(), "x") ==
             "No such file or directory");
  BOOST_TEST(read_ledger(in.path.string()).error().message == "it is no regular file");
  std::filesystem::create_directory(in.path / "full");
  BOOST_TEST(write_ledger((in.path / "full").string(), "x") != "");
  const auto large = (in.path / "large").string();
  std::ofstream(large).close();
  std::filesystem::resize_file(large, ledger_bytes + 1);
  BOOST_TEST(read_ledger(large).error().message.starts_with("it is larger than"));
}

BOOST_AUTO_TEST_SUITE_END()
