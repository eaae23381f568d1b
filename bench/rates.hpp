/// What Google Benchmark measures, without its table.
#pragma once

#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace rw::bench {

/// Remembers the rate of each run of each benchmark, which sets the items that it processed.
class rates final : public benchmark::BenchmarkReporter {
 public:
  /// Runs all that are registered, and that the program's arguments name; false if that failed.
  bool run(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return false;
    benchmark::RunSpecifiedBenchmarks(this);
    benchmark::Shutdown();
    return !failed_;
  }

  /// Items in a second, the median of the runs; 0 where that benchmark did not run.
  double median(const std::string& name) const {
    const auto at = seen_.find(name);
    if (at == seen_.end()) return 0;
    auto sorted = at->second;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

  /// Nanoseconds for an item, likewise.
  double nanoseconds(const std::string& name) const {
    const double rate = median(name);
    return rate == 0 ? 0 : 1e9 / rate;
  }

  bool ReportContext(const Context&) override { return true; }

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      auto name = run.run_name.function_name;
      if (!run.run_name.args.empty()) name += "/" + run.run_name.args;
      const auto rate = run.counters.find("items_per_second");
      if (rate == run.counters.end()) {  // nor is there one for what was ended with an error
        std::fprintf(stderr, "%s: no rate was measured\n", name.c_str());
        failed_ = true;
        continue;
      }
      seen_[name].push_back(rate->second.value);
    }
  }

 private:
  std::map<std::string, std::vector<double>> seen_;
  bool failed_ = false;
};

}  // namespace rw::bench
