// simulation [--seeds FROM..TO] [--seed N [--verbose]]
//
// Runs seeds, each 50th twice, and ends with 1 at the first that breaks a promise, or that is not
// the same twice, with its trace and the command that repeats it.

#include "rw/core/fixed_hash_key.hpp"

#include "tests/simulation/scenario.hpp"
#include <charconv>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <string_view>

namespace {

using rw::simulation::outcome;

bool number(std::string_view text, std::uint64_t& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

struct arguments {
  std::uint64_t from = 1;
  std::uint64_t to = 100;
  bool verbose = false;
};

bool parse(int argc, char** argv, arguments& into) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--verbose") {
      into.verbose = true;
    } else if (name == "--seed" && number(value, into.from)) {
      into.to = into.from;
      ++i;
    } else if (const auto dots = value.find(".."); name == "--seeds" &&
                                                   dots != std::string_view::npos &&
                                                   number(value.substr(0, dots), into.from) &&
                                                   number(value.substr(dots + 2), into.to)) {
      ++i;
    } else {
      return false;
    }
  }
  return true;
}

int report(const outcome& failed, std::string_view program) {
  for (const auto& line : failed.trace) std::cout << line << '\n';
  std::cout << "seed " << failed.seed << " failed:\n";
  for (const auto& each : failed.violations) std::cout << "  " << each << '\n';
  std::cout << "repeat: " << program << " --seed " << failed.seed << " --verbose\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  rw::core::fix_hash_key({1, 2});
  arguments with;
  if (!parse(argc, argv, with)) {
    std::cerr << "usage: " << argv[0] << " [--seeds FROM..TO] [--seed N [--verbose]]\n";
    return 2;
  }
  std::uint64_t changes = 0;
  std::uint64_t events = 0;
  std::map<std::string_view, std::uint64_t> resyncs;
  std::uint64_t hash = 0;
  for (auto seed = with.from; seed <= with.to; ++seed) {
    auto done = rw::simulation::run(seed, with.verbose);
    if (seed % 50 == 0 && rw::simulation::run(seed, with.verbose).hash != done.hash) {
      done.violations.emplace_back("another run had another trace");
    }
    if (!done.violations.empty()) return report(done, argv[0]);
    if (with.verbose) {
      for (const auto& line : done.trace) std::cout << line << '\n';
    }
    changes += done.changes;
    events += done.events;
    for (const auto& [reason, count] : done.resyncs) resyncs[reason] += count;
    hash = hash * 31 + done.hash;
  }
  std::cout << with.to - with.from + 1 << " seeds, " << changes << " changes, " << events
            << " events";
  for (const auto& [reason, count] : resyncs)
    std::cout << ", " << count << " resyncs (" << reason << ")";
  std::cout << ", trace " << std::hex << hash << '\n';
  return 0;
}
