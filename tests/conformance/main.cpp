// The suite's own main: tests that are known to differ have to, and one line tells what was run.

#include <boost/test/results_collector.hpp>
#include <boost/test/tree/test_unit.hpp>
#include <boost/test/tree/traverse.hpp>
#include <boost/test/tree/visitor.hpp>
#include <boost/test/unit_test.hpp>
#include <boost/test/unit_test_log.hpp>

#include "backend.hpp"
#include "differences.hpp"
#include <iostream>
#include <set>
#include <stdexcept>
#include <string>

namespace {

namespace ut = boost::unit_test;
using rw::conformance::backend;
using rw::conformance::difference;

/// The suite or case of that name directly below `parent`.
template <class Unit>
Unit& child(ut::test_suite& parent, const std::string& name) {
  const auto id = parent.get(name);
  if (id == ut::INV_TEST_UNIT_ID) throw std::logic_error("there is no test " + name);
  return ut::framework::get<Unit>(id);
}

/// Judges what was run: a test that is known to differ has to fail, any other one to pass.
class verdict : public ut::test_observer {
 public:
  void expect(const difference& one) {
    const std::string path(one.test);
    const auto slash = path.find('/');
    auto& suite = child<ut::test_suite>(ut::framework::master_test_suite(), path.substr(0, slash));
    differing_.insert(child<ut::test_case>(suite, path.substr(slash + 1)).p_id);
  }

  // A failure that is expected is not worth a word.
  void test_unit_start(const ut::test_unit& unit) override {
    if (differing_.contains(unit.p_id)) ut::unit_test_log.set_threshold_level(ut::log_nothing);
  }
  void test_unit_finish(const ut::test_unit& unit, unsigned long) override {
    if (differing_.contains(unit.p_id)) ut::unit_test_log.set_threshold_level(ut::log_all_errors);
  }

  void test_finish() override {
    judge all(*this);
    ut::traverse_test_tree(ut::framework::master_test_suite(), all);
    std::cout << "conformance: " << ran_ << " behaviours of " << description << ", "
              << differing_.size() << " of them known to differ, " << wrong_
              << " not as they should be\n";
  }

  /// What the process ends with.
  int code(int of_the_framework) const {
    return ran_ == 0 ? of_the_framework : static_cast<int>(wrong_ > 0);
  }

  std::string description = "nothing";

 private:
  struct judge : ut::test_tree_visitor {
    explicit judge(verdict& v) : to(v) {}
    void visit(const ut::test_case& test) override { to.look_at(test); }
    verdict& to;
  };

  void look_at(const ut::test_case& test) {
    if (!test.is_enabled()) return;
    ++ran_;
    const bool passed = ut::results_collector.results(test.p_id).passed();
    const bool differs = differing_.contains(test.p_id);
    if (passed != differs) return;
    ++wrong_;
    std::cout << test.full_name()
              << (passed ? ": the difference is gone, take it off known_differences()\n"
                         : ": failed\n");
  }

  std::set<ut::test_unit_id> differing_;
  unsigned ran_ = 0;
  unsigned wrong_ = 0;
};

verdict the_verdict;

/// Starts the backend with the first test, and ends it with the last.
struct session {
  session() { the_verdict.description = backend::get().description(); }
  ~session() { backend::stop(); }
};

bool prepare() {
  const auto here = backend::embedded() ? difference::where::embedded : difference::where::kube;
  for (const auto& one : rw::conformance::known_differences()) {
    if (one.on == here) the_verdict.expect(one);
  }
  // What the real server of the suite is too old for.
  if (!backend::embedded()) {
    auto& all = ut::framework::master_test_suite();
    for (const auto* name : {"embedded_only", "replay"}) {
      all.remove(child<ut::test_suite>(all, name).p_id);
    }
  }
  ut::framework::register_observer(the_verdict);
  return true;
}

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(session);

int main(int argc, char* argv[]) {
  // A wait whose deadline passes is a failure of the test; a crash is one of the suite.
  return the_verdict.code(ut::unit_test_main(&prepare, argc, argv));
}
