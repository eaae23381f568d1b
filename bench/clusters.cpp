// 1,000 logical clusters in one embedded API server, and in another process one informer for each,
// then a drift watch of ten kinds for each, over TLS and HTTP/2: what an idle cluster costs on
// either side, everything included (the connection, its TLS, the watches, the cluster's objects,
// the client and what reads it). Prints one line of JSON for each figure. Ends with 1 if a limit is
// missed.
//
//   bench_clusters [CLUSTERS]

#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/devserver/server.hpp"
#include "rw/reactors/runtime_controller/remote_watch.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>

#include "bench/figure.hpp"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <malloc.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace core = rw::core;
namespace k8s = rw::k8s;

// Limits are those of 1,000 clusters: among fewer, what all share weighs more.
constexpr std::size_t limited_clusters = 1000;
constexpr double informer_limit = 64;     // KiB
constexpr double drift_watch_limit = 60;  // KiB
constexpr std::size_t handshakes = 32;    // at once
constexpr std::chrono::seconds patience(120);
/// A connection that has been quiet for so long has given back what it needed before.
constexpr std::chrono::seconds settling(32);

/// Memory of this process, in KiB.
struct memory {
  double resident = 0;
  double allocated = 0;
};

/// What is held: what was freed and lies about in the heap goes back first.
memory measure() {
  malloc_trim(0);
  std::ifstream file("/proc/self/statm");
  long total = 0;
  long resident = 0;
  file >> total >> resident;
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
  const auto info = mallinfo2();
  return {static_cast<double>(resident) * page,
          static_cast<double>(info.uordblks + info.hblkhd) / 1024};
}

/// What both processes are made of.
struct process {
  asio::io_context context{1};
  // Without work the context would stop, and each further run of it return at once.
  asio::executor_work_guard<asio::io_context::executor_type> open{context.get_executor()};
  core::real_clock clock;
  core::metrics metrics;
  core::logger log{core::log_level::warning};
  core::watchdog watchdog{clock, context.get_executor()};
  core::task_group tasks{context.get_executor()};

  process() { tasks.spawn(watchdog.run()); }

  /// Runs until `done`; false if that takes too long.
  template <class Condition>
  bool run_until(Condition done) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!done() && std::chrono::steady_clock::now() < end) {
      context.run_one_for(std::chrono::milliseconds(100));
    }
    return done();
  }

  void stop() {
    tasks.cancel();
    bool joined = false;
    asio::co_spawn(context, tasks.join(), [&joined](std::exception_ptr) { joined = true; });
    run_until([&] { return joined; });
  }
};

std::string cluster_name(std::size_t i) {
  return "runtime-" + std::to_string(i);
}

/// The pipes between the two, as C streams.
struct pipes {
  std::FILE* in;
  std::FILE* out;
};

std::string read_line(std::FILE* from) {
  std::string line;
  for (int c = std::fgetc(from); c != EOF && c != '\n'; c = std::fgetc(from)) {
    line += static_cast<char>(c);
  }
  return line;
}

void write_text(std::FILE* to, const std::string& text) {
  std::fprintf(to, "%zu\n", text.size());
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

std::string read_text(std::FILE* from) {
  std::string text(std::stoul(read_line(from)), '\0');
  if (std::fread(text.data(), 1, text.size(), from) != text.size()) {
    throw std::runtime_error("the server's process has gone");
  }
  return text;
}

/// The server's process: tells each cluster's kubeconfig; then, at each line that comes, what
/// memory it holds; ends when the pipe is closed.
int serve(std::size_t clusters, int in, std::FILE* out) {
  process self;
  k8s::devserver::server server(self.context.get_executor(), {},
                                {self.clock, self.watchdog, self.log, self.metrics});
  self.tasks.spawn(server.run());
  self.context.poll();
  const auto before = measure();
  for (std::size_t i = 0; i < clusters; ++i) server.add_cluster(cluster_name(i));
  for (std::size_t i = 0; i < clusters; ++i) write_text(out, server.kubeconfig(cluster_name(i)));

  asio::posix::stream_descriptor commands(self.context, in);
  asio::streambuf line;
  bool done = false;
  std::function<void()> listen = [&] {
    asio::async_read_until(commands, line, '\n',
                           [&](boost::system::error_code error, std::size_t n) {
                             if (error) {
                               done = true;
                               return;
                             }
                             line.consume(n);
                             const auto now = measure();
                             std::fprintf(out, "%f %f\n", now.resident - before.resident,
                                          now.allocated - before.allocated);
                             std::fflush(out);
                             listen();
                           });
  };
  listen();
  const auto end = std::chrono::steady_clock::now() + 2 * patience;
  while (!done && std::chrono::steady_clock::now() < end) {
    self.context.run_one_for(std::chrono::seconds(1));
  }
  // What is left is the kernel's to clear away.
  std::_Exit(0);
}

/// What reads the clusters.
class fleet {
 public:
  explicit fleet(process& in) : in_(in) {}
  virtual ~fleet() = default;

  void add(const std::string& kubeconfig) {
    auto how = k8s::parse_kubeconfig(kubeconfig, "generated", ".");
    if (how.has_error()) throw std::runtime_error(how.error().message);
    clients_.push_back(std::make_shared<k8s::client>(
        in_.context.get_executor(), std::move(*how),
        k8s::client_options{.user_agent = "bench", .field_manager = "bench"},
        k8s::client_environment{in_.clock, in_.watchdog, in_.log, in_.metrics}));
    begin(clients_.back());
  }
  virtual bool synced() const = 0;

  void close() {
    for (auto& api : clients_) {
      bool closed = false;
      asio::co_spawn(in_.context, api->close(), [&](std::exception_ptr) { closed = true; });
      in_.run_until([&] { return closed; });
    }
  }

  std::size_t size() const { return clients_.size(); }

 protected:
  virtual void begin(const std::shared_ptr<k8s::client>& api) = 0;

  process& in_;

 private:
  std::vector<std::shared_ptr<k8s::client>> clients_;
};

class informers final : public fleet {
 public:
  using fleet::fleet;

  bool synced() const override {
    return std::ranges::all_of(all_, [](const auto& one) { return one->synced(); });
  }

 private:
  void begin(const std::shared_ptr<k8s::client>& api) override {
    all_.push_back(std::make_unique<k8s::informer>(
        *api, k8s::resource_type{{"", "v1", "ConfigMap"}, "configmaps", true},
        k8s::informer_options{},
        k8s::informer_environment{in_.clock, in_.log, in_.metrics, core::make_random_source()}));
    in_.tasks.spawn(all_.back()->run());
  }

  std::vector<std::unique_ptr<k8s::informer>> all_;
};

/// Watches what a Runtime Bootstrapper and a watcher consist of. An object that is not as expected
/// tells that a cluster's watches have begun.
class drift_watches final : public fleet {
 public:
  explicit drift_watches(process& in)
      : fleet(in),
        watch_(in.context.get_executor(), {.metrics = "rw_bench"},
               [this](const k8s::object_key&, core::duration) { ++begun_; },
               {in.clock, in.metrics, core::make_random_source()}) {
    in.tasks.spawn(watch_.run());
    in.context.poll();
  }

  bool synced() const override { return begun_ == size(); }

 private:
  void begin(const std::shared_ptr<k8s::client>& api) override {
    rw::watched_set set;
    const auto add_kind = [&](const char* group, const char* kind, const char* plural,
                              bool namespaced) {
      set.add({{group, "v1", kind}, plural, namespaced},
              {namespaced ? "kyma-system" : "", "runtime-bootstrapper"}, "1", {});
    };
    add_kind("", "Namespace", "namespaces", false);
    add_kind("", "ConfigMap", "configmaps", true);
    add_kind("", "Secret", "secrets", true);
    add_kind("", "Service", "services", true);
    add_kind("", "ServiceAccount", "serviceaccounts", true);
    add_kind("apps", "Deployment", "deployments", true);
    add_kind("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", false);
    add_kind("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", false);
    add_kind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration",
             "validatingwebhookconfigurations", false);
    add_kind("admissionregistration.k8s.io", "MutatingWebhookConfiguration",
             "mutatingwebhookconfigurations", false);
    set.add(set.watches.front().type, {"", "default"}, "none", {});
    watch_.watch({"", cluster_name(size())}, api, std::move(set));
  }

  rw::remote_watch watch_;
  std::size_t begun_ = 0;
};

template <class Fleet>
memory run_fleet(const std::string& name, const std::vector<std::string>& kubeconfigs,
                 const pipes& server, memory& theirs) {
  process self;
  Fleet all(self);
  // One of everything first, so that what all share is not counted.
  all.add(kubeconfigs.front());
  const auto synced = [&] { return all.synced(); };
  if (!self.run_until(synced)) throw std::runtime_error("the first cluster is not in step");
  const auto before = measure();
  const auto began = std::chrono::steady_clock::now();
  for (std::size_t i = 1; i < kubeconfigs.size(); ++i) {
    all.add(kubeconfigs[i]);
    // The server refuses more handshakes than this at once.
    const bool enough = i % handshakes == 0 || i + 1 == kubeconfigs.size();
    if (enough && !self.run_until(synced)) throw std::runtime_error("clusters are not in step");
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  rw::bench::print({.name = name + "_in_step", .value = took.count(), .unit = "s"});
  self.context.run_for(settling);
  const auto now = measure();
  std::fputs("measure\n", server.out);
  std::fflush(server.out);
  const auto line = read_line(server.in);
  if (std::sscanf(line.c_str(), "%lf %lf", &theirs.resident, &theirs.allocated) != 2) {
    throw std::runtime_error("the server's process does not answer");
  }
  self.stop();
  all.close();
  return {now.resident - before.resident, now.allocated - before.allocated};
}

/// What each idle cluster costs a side; true if the limit is kept, zero being none.
bool report(const std::string& side, const memory& all, std::size_t clusters, double limit) {
  const auto each = [&](double kib) { return kib / static_cast<double>(clusters); };
  rw::bench::print({.name = side + "_allocated", .value = each(all.allocated), .unit = "KiB"});
  return rw::bench::print(
      {.name = side + "_resident", .value = each(all.resident), .unit = "KiB", .limit = limit});
}

/// Both processes; a limit of zero is none.
template <class Fleet>
bool run(const std::string& what, std::size_t clusters, double server_limit, double client_limit) {
  const auto name = "clusters/" + what;
  int down[2];
  int up[2];
  if (pipe(down) != 0 || pipe(up) != 0) throw std::runtime_error("no pipe");
  const auto child = fork();
  if (child == 0) {
    close(down[1]);
    close(up[0]);
    std::_Exit(serve(clusters, down[0], fdopen(up[1], "w")));
  }
  close(down[0]);
  close(up[1]);
  const pipes server{fdopen(up[0], "r"), fdopen(down[1], "w")};
  std::vector<std::string> kubeconfigs(clusters);
  for (auto& each : kubeconfigs) each = read_text(server.in);
  memory theirs;
  const auto ours = run_fleet<Fleet>(name, kubeconfigs, server, theirs);
  std::fclose(server.out);
  std::fclose(server.in);
  waitpid(child, nullptr, 0);
  const auto limit = [&](double kib) { return clusters >= limited_clusters ? kib : 0; };
  const bool server_ok = report(name + "_server", theirs, clusters, limit(server_limit));
  const bool client_ok = report(name + "_client", ours, clusters - 1, limit(client_limit));
  return server_ok && client_ok;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t clusters = argc > 1 ? std::stoul(argv[1]) : 1000;
  const rlimit files{65536, 65536};
  rlimit present{};
  getrlimit(RLIMIT_NOFILE, &present);
  if (present.rlim_cur < 2 * clusters + 100) setrlimit(RLIMIT_NOFILE, &files);
  try {
    const bool informers_ok = run<informers>("informer", clusters, informer_limit, informer_limit);
    const bool watches_ok = run<drift_watches>("drift_watch", clusters, 0, drift_watch_limit);
    return informers_ok && watches_ok ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_clusters: %s\n", e.what());
    return 2;
  }
}
