// One workload at a time for bench/instructions.py, which counts the instructions of its turns: in
// one thread, without TLS, with a clock that stands still, and one piece of work under way at a
// time, so that each run does the same. Prints how often a turn allocates memory.
//
//   bench_instructions WORKLOAD TURNS GATEWAY_PORT
//   bench_instructions gateway BATCH_EVENTS
//
// The workloads:
// - review: without a change, over HTTP/1.1, until its response is there;
// - event: a review with a change of an object of its own, until its event is delivered in a
//   request of its own over HTTP/2;
// - batched: 64 of these at once, on as many connections, and their events in batches;
// - watch: an object of 1 KiB that an informer's watch brings, into its store;
// - queue: add, get and done of a key of a work queue;
// - reconcile: a key that is added to a controller, until its reconcile has ended.
//
// The gateway is a process of its own, whose instructions nobody counts. It takes batches of as
// many events (0: none), and prints its port.

#include "rw/core/task_group.hpp"
#include "rw/core/work_queue.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/controller/controller.hpp"
#include "rw/reactors/events/admission.hpp"
#include "rw/reactors/events/dispatch.hpp"
#include "rw/reactors/events/observation.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "tests/unit/http/echo.hpp"
#include "tests/unit/manual_clock.hpp"
#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <utility>
#include <vector>

// The allocator of the whole process, libraries included, with a count: glibc's own, by the names
// that it keeps for that.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

std::size_t allocations = 0;

[[gnu::visibility("default")]] void* malloc(std::size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
[[gnu::visibility("default")]] void* calloc(std::size_t count, std::size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
[[gnu::visibility("default")]] void* realloc(void* old, std::size_t bytes) {
  ++allocations;
  return __libc_realloc(old, bytes);
}
[[gnu::visibility("default")]] void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
}

/// What bench/instructions.py counts, by its name.
extern "C" [[gnu::noinline]] void measured_turns(const std::function<void()>& turn,
                                                 std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) turn();
}

namespace {

namespace asio = boost::asio;
namespace core = rw::core;
namespace http = rw::http;
using asio::ip::tcp;

const tcp::endpoint any_port{asio::ip::address_v4::loopback(), 0};

struct surroundings {
  asio::io_context context{1};
  core::manual_clock clock;
  core::metrics metrics;
  core::logger log{core::log_level::error};
  core::watchdog watchdog{clock, context.get_executor()};
};

/// Says 200 to everything, and that it takes batches where `batch_events` is not 0.
class gateway final : public http::handler {
 public:
  explicit gateway(std::string batch_events) : batch_events_(std::move(batch_events)) {}
  std::size_t body_limit(const http::request&) const override { return 1U << 20; }
  asio::awaitable<void> handle(http::request&, http::response& into) override {
    into.status = 200;
    if (batch_events_ != "0") into.headers.add(rw::batch_offer_header, batch_events_);
    return {};
  }

 private:
  const std::string batch_events_;
};

int run_gateway(const std::string& batch_events) {
  surroundings around;
  core::real_clock clock;
  core::watchdog watchdog(clock, around.context.get_executor());
  http::test::h2_transport transport;
  gateway responses(batch_events);
  http::server server(around.context.get_executor(), {"gateway", any_port, {}}, responses,
                      {transport, watchdog, around.log, around.metrics});
  core::task_group tasks(around.context.get_executor());
  tasks.spawn(server.run());
  std::printf("%u\n", unsigned{server.address().port()});
  std::fflush(stdout);
  around.context.run();
  return 0;
}

std::string object(std::string_view name, std::string_view channel) {
  std::string out =
      R"({"apiVersion":"operator.kyma-project.io/v1beta2","kind":"Kyma","metadata":{"annotations":)"
      R"({"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"operator.kyma-project.io/v1beta2\",)"
      R"(\"kind\":\"Kyma\",\"spec\":{\"channel\":\"regular\"}}\n"},"creationTimestamp":"2024-05-01T09:00:00Z",)"
      R"("generation":4,"labels":{"operator.kyma-project.io/watched-by":"kyma"},"managedFields":[{"apiVersion":)"
      R"("operator.kyma-project.io/v1beta2","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{}}},)"
      R"("f:spec":{".":{},"f:channel":{},"f:modules":{}}},"manager":"kubectl","operation":"Update",)"
      R"("time":"2024-05-01T09:00:00Z"}],"name":")";
  out += name;
  out +=
      R"(","namespace":"kyma-system","resourceVersion":"812733","uid":"1f4a6c1e-53f7-4a0e-8e8c-2f8bb5c7a002"},"spec":{"channel":")";
  out += channel;
  out +=
      R"(","modules":[{"name":"btp-operator","customResourcePolicy":"CreateAndDelete","managed":true},)"
      R"({"name":"serverless","channel":"fast","managed":true}]},"status":{"state":"Ready","conditions":[{"type":"Modules",)"
      R"("status":"True","reason":"Ready","message":"all modules are in ready state","observedGeneration":3}]}})";
  return out;
}

/// A request of the API server, with a body of some 3 KiB.
std::string review(const std::string& name, std::string_view channel) {
  const auto body =
      R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"0df28fbd-5f5f-11e8-bc74-36e6bb280816",)"
      R"("kind":{"group":"operator.kyma-project.io","version":"v1beta2","kind":"Kyma"},)"
      R"("resource":{"group":"operator.kyma-project.io","version":"v1beta2","resource":"kymas"},"name":")" +
      name +
      R"(","namespace":"kyma-system","operation":"UPDATE","userInfo":{"username":"kubernetes-admin",)"
      R"("groups":["system:masters","system:authenticated"]},"object":)" +
      object(name, channel) + R"(,"oldObject":)" + object(name, "regular") +
      R"(,"dryRun":false,"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}}})";
  return "POST /validate/lifecycle-manager?timeout=10s HTTP/1.1\r\nHost: "
         "skr-webhook.kyma-system.svc\r\n"
         "User-Agent: kube-apiserver-admission\r\nContent-Length: " +
         std::to_string(body.size()) +
         "\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\nAccept-Encoding: "
         "gzip\r\n\r\n" +
         body;
}

/// A connection of the API server; its side is the kernel's alone.
class api_server_connection {
 public:
  explicit api_server_connection(const tcp::endpoint& to) {
    socket_.connect(to);
    socket_.set_option(tcp::no_delay(true));
  }
  void send(const std::string& request) {
    if (::send(socket_.native_handle(), request.data(), request.size(), 0) !=
        static_cast<ssize_t>(request.size()))
      std::abort();
  }
  /// True if a response is there.
  bool responded() {
    std::array<char, 1024> in;
    const auto got = ::recv(socket_.native_handle(), in.data(), in.size(), MSG_DONTWAIT);
    if (got == 0 || (got > 0 && !std::string_view(in.data(), 12).ends_with(" 200"))) std::abort();
    return got > 0;
  }

 private:
  asio::io_context context_;
  tcp::socket socket_{context_};
};

/// What is measured: `begin` starts a turn, which has ended when `done` says so.
struct workload : surroundings {
  virtual ~workload() = default;
  virtual void begin() = 0;
  virtual bool done() { return true; }
  virtual std::size_t pieces() const { return 1; }

  void turn() {
    begin();
    while (!done()) context.run_one();
  }
};

class webhook_load : public workload {
 public:
  webhook_load(std::size_t connections, std::size_t distinct, std::string_view channel) {
    tasks_.spawn(watchdog.run());
    tasks_.spawn(server_.run());
    context.poll();
    for (std::size_t i = 0; i < connections; ++i) connections_.emplace_back(server_.address());
    for (std::size_t i = 0; i < distinct; ++i)
      requests_.push_back(review("kyma-" + std::to_string(1000 + i), channel));
  }

  void begin() override {
    for (auto& each : connections_) each.send(requests_[next_++ % requests_.size()]);
    responded_ = 0;
  }
  bool done() override {
    while (responded_ < connections_.size() && connections_[responded_].responded()) ++responded_;
    return responded_ == connections_.size();
  }
  std::size_t pieces() const override { return connections_.size(); }

 protected:
  core::channel<rw::watch_event> events_{1024};
  core::task_group tasks_{context.get_executor()};

 private:
  std::unique_ptr<core::transport> plain_ = core::make_plain_transport();
  rw::admission::webhook webhook_{{}, events_, clock, log, metrics};
  http::server server_{context.get_executor(),
                       {"webhook", any_port, {}},
                       webhook_,
                       {*plain_, watchdog, log, metrics}};
  std::deque<api_server_connection> connections_;
  std::vector<std::string> requests_;
  std::size_t next_ = 0;
  std::size_t responded_ = 0;
};

class event_load final : public webhook_load {
 public:
  event_load(std::size_t connections, std::uint16_t gateway)
      : webhook_load(connections, 1024, "fast") {
    rw::dispatch::dispatch_options options;
    options.upstream.name = "kcp";
    options.upstream.host = "127.0.0.1";
    options.upstream.port = gateway;
    dispatcher_.emplace(context.get_executor(), options,
                        rw::dispatch::dispatch_environment{.clock = clock,
                                                           .watchdog = watchdog,
                                                           .transport = transport_,
                                                           .log = log,
                                                           .metrics = metrics,
                                                           .random = core::make_random_source(),
                                                           .objects = objects_});
    rw::observation::observation_options at_once;
    at_once.observer.settle = {};
    at_once.watches = false;
    observation_.emplace(
        context.get_executor(), at_once, events_,
        rw::observation::observation_environment{clock, log, metrics, core::make_random_source(),
                                                 *dispatcher_, objects_});
    tasks_.spawn(dispatcher_->run());
    tasks_.spawn(observation_->run());
  }

  bool done() override {
    return webhook_load::done() && events_.size() + dispatcher_->pending() == 0;
  }

 private:
  http::test::h2_transport transport_;
  rw::dispatch::delivery objects_{{}};
  std::optional<rw::dispatch::dispatcher> dispatcher_;
  std::optional<rw::observation::observation> observation_;
};

/// Gives an informer one object, then as many changes of it as there are turns.
class watch_load final : public workload {
 public:
  watch_load() {
    tasks_.spawn(informer_.run());
    context.poll();
    if (source_->sink == nullptr || informer_.objects().size() != objects) std::abort();
  }
  void begin() override {
    if (!source_->sink->take(changes_.at(next_++))) std::abort();
  }

 private:
  static constexpr std::size_t objects = 100;

  static std::string object_text(std::size_t number, std::size_t version) {
    auto text = object("kyma-" + std::to_string(number), "regular");
    const auto at = text.find("812733");
    return text.replace(at, 6, std::to_string(version));
  }

  struct recorded final : rw::k8s::api_source {
    explicit recorded(asio::any_io_executor on) : executor(std::move(on)) {}
    asio::any_io_executor get_executor() const noexcept override { return executor; }
    asio::awaitable<rw::k8s::result<std::pair<unsigned, unsigned>>> server_version() override {
      co_return rw::k8s::failure{.code = rw::k8s::errc::not_found};
    }
    asio::awaitable<rw::k8s::result<std::string>> list_text(rw::k8s::resource_type,
                                                            rw::k8s::selection,
                                                            rw::k8s::list_options) override {
      std::string page = R"({"apiVersion":"operator.kyma-project.io/v1beta2","items":[)";
      for (std::size_t i = 0; i < objects; ++i)
        page += (i > 0 ? "," : "") + object_text(i, 100000 + i);
      co_return page + R"(],"kind":"KymaList","metadata":{"resourceVersion":"200000"}})";
    }
    asio::awaitable<rw::k8s::result<rw::k8s::opened_watch>> open_watch(
        rw::k8s::resource_type, rw::k8s::selection, rw::k8s::watch_options,
        rw::k8s::watch_sink& into) override {
      sink = &into;
      co_return std::make_unique<http::opened_exchange>();  // goes on
    }
    asio::any_io_executor executor;
    rw::k8s::watch_sink* sink = nullptr;
  };

  std::shared_ptr<recorded> source_ = std::make_shared<recorded>(context.get_executor());
  rw::k8s::informer informer_{
      source_,
      {{"operator.kyma-project.io", "v1beta2", "Kyma"}, "kymas", true},
      {.keep = rw::k8s::projection::without_managed_fields(), .streaming_list = false},
      {clock, log, metrics, core::make_random_source()}};
  std::vector<std::string> changes_ = [] {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < 2000; ++i) {
      out.push_back(R"({"type":"MODIFIED","object":)" + object_text(i * 79 % objects, 300000 + i) +
                    "}\n");
    }
    return out;
  }();
  std::size_t next_ = 0;
  core::task_group tasks_{context.get_executor()};
};

std::vector<rw::k8s::object_key> make_keys() {
  std::vector<rw::k8s::object_key> keys;
  for (std::size_t i = 0; i < 1024; ++i)
    keys.push_back({"kcp-system", "2f8bb5c7a002-" + std::to_string(1000 + i) + "-kyma"});
  return keys;
}

class queue_load final : public workload {
 public:
  void begin() override {
    if (queue_.add(keys_[next_++ % keys_.size()]) != core::add_result::added) std::abort();
    queue_.try_get().done();
  }

 private:
  const std::vector<rw::k8s::object_key> keys_ = make_keys();
  core::work_queue<rw::k8s::object_key, rw::k8s::object_key_hash> queue_{
      context.get_executor(), {.name = "bench"}, {clock, metrics, core::make_random_source()}};
  std::size_t next_ = 0;
};

class reconcile_load final : public workload {
 public:
  reconcile_load() {
    tasks_.spawn(watchdog.run());
    tasks_.spawn(controller_.run());
    context.poll();
  }
  void begin() override { controller_.add(keys_[next_++ % keys_.size()]); }
  bool done() override { return target_.count == next_; }

 private:
  struct counting final : rw::k8s::reconciler {
    asio::awaitable<rw::k8s::reconcile_result> reconcile(rw::k8s::object_key) override {
      ++count;
      co_return rw::k8s::reconcile_result();
    }
    std::size_t count = 0;
  } target_;

  const std::vector<rw::k8s::object_key> keys_ = make_keys();
  rw::k8s::controller controller_{context.get_executor(),
                                  {.name = "bench"},
                                  target_,
                                  {clock, watchdog, log, metrics, core::make_random_source()}};
  std::size_t next_ = 0;
  core::task_group tasks_{context.get_executor()};
};

std::unique_ptr<workload> make(std::string_view name, std::uint16_t gateway) {
  if (name == "review") return std::make_unique<webhook_load>(1, 1, "regular");
  if (name == "event") return std::make_unique<event_load>(1, gateway);
  if (name == "batched") return std::make_unique<event_load>(64, gateway);
  if (name == "watch") return std::make_unique<watch_load>();
  if (name == "queue") return std::make_unique<queue_load>();
  if (name == "reconcile") return std::make_unique<reconcile_load>();
  throw std::runtime_error("no such workload");
}

/// Allocations of so many turns, in one call of the loop as in a program: with each call Asio
/// begins without memory to reuse.
std::size_t allocations_of(workload& load, std::size_t turns) {
  std::size_t left = turns + 1;
  std::size_t before = 0;
  std::size_t after = 0;
  std::function<void()> look = [&] {
    if (load.done()) {
      if (left-- == 0) {
        after = allocations;
        return load.context.stop();
      }
      if (left == turns) before = allocations;
      load.begin();
    }
    asio::post(load.context, std::ref(look));
  };
  look();
  load.context.run();
  load.context.restart();
  return after - before;
}

int run(std::string_view name, std::size_t turns, std::uint16_t gateway) {
  const auto load = make(name, gateway);
  // Until all memory is there that is used again: more turns than there are different requests.
  for (std::size_t i = 0; i < 1100; ++i) load->turn();
  const auto allocated = allocations_of(*load, turns);
  measured_turns([&] { load->turn(); }, turns);
  const auto pieces = static_cast<double>(turns * load->pieces());
  std::printf("{\"pieces\": %.0f, \"allocations\": %.3f}\n", pieces,
              static_cast<double>(allocated) / pieces);
  std::fflush(stdout);
  std::_Exit(0);  // what is under way needs no end
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.size() == 2 && arguments[0] == "gateway") return run_gateway(arguments[1]);
    if (arguments.size() == 3) {
      return run(arguments[0], std::stoul(arguments[1]),
                 static_cast<std::uint16_t>(std::stoul(arguments[2])));
    }
    std::fprintf(stderr, "bench_instructions WORKLOAD TURNS GATEWAY_PORT\n");
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_instructions: %s\n", e.what());
    return 1;
  }
}
