// Each parser of foreign bytes on texts of many shapes and of three sizes, for
// tests/linear/linear.py, which counts their instructions with callgrind: a profile for each, named
// in it.
//
//   linear_parsers PARSER SMALLEST      reads texts of SMALLEST bytes, twice and four times as many
//   linear_parsers                      names the parsers
//
// Prints a line for each text: parser, shape, bytes, and the most memory that was allocated
// meanwhile.

#include "rw/core/http/message.hpp"
#include "rw/core/http/tunnel.hpp"
#include "rw/k8s/cache/list_decoder.hpp"
#include "rw/k8s/cache/watch_decoder.hpp"
#include "rw/k8s/config/config.hpp"
#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/status.hpp"
#include "rw/reactors/cli/runtimes_view.hpp"
#include "rw/reactors/events/digest.hpp"
#include "rw/reactors/events/review.hpp"
#include "rw/reactors/shared/event_json.hpp"
#include "rw/reactors/shared/heartbeat.hpp"
#include "rw/tls/material.hpp"
#include "rw/tls/xfcc.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <malloc.h>
#include <map>
#include <string>
#include <string_view>
#include <valgrind/callgrind.h>
#include <vector>

// The allocator of the whole process, libraries included, with a sum: glibc's own, by the names
// that it keeps for that.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* memory);

std::size_t allocated = 0;
std::size_t peak = 0;

static void* counted(void* memory) {
  if (memory != nullptr) allocated += malloc_usable_size(memory);
  peak = allocated > peak ? allocated : peak;
  return memory;
}
[[gnu::visibility("default")]] void* malloc(std::size_t bytes) {
  return counted(__libc_malloc(bytes));
}
[[gnu::visibility("default")]] void* calloc(std::size_t count, std::size_t bytes) {
  return counted(__libc_calloc(count, bytes));
}
[[gnu::visibility("default")]] void* realloc(void* old, std::size_t bytes) {
  const auto before = old == nullptr ? 0 : malloc_usable_size(old);
  auto* const made = __libc_realloc(old, bytes);
  if (made != nullptr) allocated -= before;
  return counted(made);
}
[[gnu::visibility("default")]] void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return counted(__libc_memalign(alignment, bytes));
}
[[gnu::visibility("default")]] void free(void* memory) {
  if (memory != nullptr) allocated -= malloc_usable_size(memory);
  __libc_free(memory);
}
}

namespace {

using reader = std::function<void(const std::string& text)>;

std::string repeated(std::string_view element, std::size_t size) {
  std::string out;
  while (out.size() + element.size() + 2 <= size) out += element;
  return out;
}

std::string names(std::size_t size, bool backward) {
  std::vector<std::string> all;
  char text[32];
  for (std::size_t i = 0; 12 * (i + 1) + 2 <= size; ++i) {
    std::snprintf(text, sizeof text, "\"%06zx\":0", i);
    all.emplace_back(text);
  }
  if (backward) std::reverse(all.begin(), all.end());
  std::string out = "{";
  for (const auto& each : all) {
    if (out.size() > 1) out += ',';
    out += each;
  }
  return out + "}";
}

/// The beginning of an object whose names take so many bytes, and descend.
std::string long_names(std::size_t size) {
  std::string out = "{";
  for (char c = 'z'; c >= 'b'; --c)
    out += '"' + std::string(1, c) + std::string(size / 25, 'n') + "\":1,";
  return out;
}

/// Two values of a shape, each of about `size` bytes, that are equal, in another spelling where
/// they can be.
using pair = std::pair<std::string, std::string>;

std::map<std::string, pair> shapes(std::size_t size) {
  const auto array = [&](std::string_view element) {
    return "[" + repeated(std::string(element) + ",", size) + "0]";
  };
  const auto twice = [](const std::string& text) { return pair(text, text + " "); };
  const auto depth = std::min<std::size_t>(size / 2, 200);
  const auto deep = [&](std::string_view inside) {
    std::string out;
    for (std::size_t i = 0; i < depth; ++i) out += R"({"b":0,"a":)";
    out += inside;
    return out + std::string(depth, '}');
  };
  const auto deep_other = [&](std::string_view inside) {
    std::string out;
    for (std::size_t i = 0; i < depth; ++i) out += R"({"a":)";
    out += inside;
    for (std::size_t i = 0; i < depth; ++i) out += R"(,"b":0})";
    return out;
  };
  const auto inner = array("0");
  return {
      {"string", twice('"' + std::string(size, 'x') + '"')},
      {"backslashes",
       {'"' + repeated("\\n", size) + '"', '"' + repeated("\\u000a", 3 * size) + '"'}},
      {"zeros", {array("0"), array("-0")}},
      {"numbers", {array("1.0"), array("1e0")}},
      {"number", {std::string(size, '1'), std::string(size, '1') + ".0"}},
      {"empty strings", twice(array(R"("")"))},
      {"strings", twice(array(R"("a")"))},
      {"escaped strings", {array(R"("a")"), array(R"("\u0061")")}},
      {"empty objects", twice(array("{}"))},
      {"small objects", {array(R"({"":0})"), array(R"({"":-0})")}},
      {"empty arrays", twice(array("[]"))},
      {"small arrays", {array("[0]"), array("[-0]")}},
      {"another order", {names(size, false), names(size, true)}},
      {"duplicates", {"{" + repeated(R"("":1,)", size) + R"("a":0})", R"({"a":0,"":1})"}},
      {"escaped names", {"{" + repeated(R"("\u0061":1,)", size) + R"("b":0})", R"({"b":0,"a":1})"}},
      {"deep and other order", {deep(inner), deep_other(inner)}},
      {"long names, then duplicates",
       {long_names(size / 2) + repeated(R"("a":1,)", size / 2) + R"("a":0})", R"({"z":1,"y":1})"}},
      {"a long name, then many",
       {R"({")" + std::string(size / 2, 'n') + R"(":1,)" + repeated(R"("b":1,)", size / 2) +
            R"("c":0})",
        R"({")" + std::string(size / 2, 'n') + R"(":2})"}},
      {"too deep", twice(std::string(size / 2, '[') + std::string(size / 2, ']'))},
      {"unclosed", twice(std::string(size, '['))},
      {"quotes", twice(std::string(size, '"'))},
      {"white space", twice("[" + std::string(size, ' ') + "0]")},
      {"zero bytes", twice(std::string(size, '\0'))}};
}

std::string review(const pair& of) {
  const auto object = [](const std::string& spec) {
    return R"({"metadata":{"name":"a","namespace":"b"},"spec":)" + spec + "}";
  };
  return R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE",)"
         R"("kind":{"group":"","version":"v1","kind":"Secret"},"name":"a","namespace":"b","object":)" +
         object(of.first) + R"(,"oldObject":)" + object(of.second) + "}}";
}

std::string object(const std::string& value) {
  return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"1"},"spec":)" +
         value + "}";
}

/// What makes a text of a shape, and what reads it.
struct parser {
  std::function<std::string(const pair& shape)> text;
  reader read;
};

std::string first(const pair& of) {
  return of.first;
}

std::map<std::string, parser> parsers() {
  using namespace rw;
  static admission::reader reviews;
  static const k8s::object_format format({{"", "v1", "ConfigMap"}, "configmaps", true}, false);
  std::map<std::string, parser> all;
  all["review"] = {review, [](const std::string& text) { reviews.read(text); }};
  all["review, bare"] = {first, [](const std::string& text) { reviews.read(text); }};
  all["event"] = {
      [](const pair& of) { return R"({"watched":)" + of.first + R"(,"x":)" + of.second + "}"; },
      [](const std::string& text) { parse_wire_event(text); }};
  all["batch"] = {first, [](const std::string& text) {
                    std::vector<wire_result> into;
                    static_cast<void>(parse_wire_batch(text, 1024, into));
                  }};
  all["heartbeat"] = {[](const pair& of) { return R"({"bootId":"a","watches":)" + of.first + "}"; },
                      [](const std::string& text) { static_cast<void>(parse_heartbeat(text)); }};
  all["status"] = {
      [](const pair& of) { return R"({"kind":"Status","details":{"causes":)" + of.first + "}}"; },
      [](const std::string& text) {
        http::response response;
        response.status = 500;
        response.body = text;
        k8s::failure_of(response, "cannot", {});
      }};
  all["list"] = {
      [](const pair& of) {
        return R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[)" +
               object(of.first) + "]}";
      },
      [](const std::string& text) {
        static_cast<void>(
            k8s::decode_list(text, format, k8s::projection::without_managed_fields()));
      }};
  all["watch"] = {
      [](const pair& of) { return R"({"type":"ADDED","object":)" + object(of.first) + "}\n"; },
      [](const std::string& text) {
        k8s::watch_decoder decoder(format, k8s::projection::whole(), text.size(),
                                   [](const k8s::decoded_event&) { return true; });
        decoder.feed(text);
      }};
  all["state"] = {[](const pair& of) { return object(of.second); },
                  [](const std::string& text) {
                    observation::state_of(core::json_document(text).root(), "spec", true);
                  }};
  all["dom"] = {first, [](const std::string& text) { static_cast<void>(k8s::read_json(text)); }};
  all["xfcc"] = {
      [](const pair& of) { return "Cert=" + of.first + ";URI=" + of.second; },
      [](const std::string& text) { static_cast<void>(tls::parse_xfcc(text, text.size())); }};
  all["tunnel"] = {[](const pair& of) { return "HTTP/1.1 200 OK\r\nx: " + of.first + "\r\n\r\n"; },
                   [](const std::string& text) {
                     http::tunnel_result into;
                     http::tunnel_reader reader(2 * text.size());
                     for (std::size_t i = 0; i < text.size(); i += 1024) {
                       if (reader.take(std::string_view(text).substr(i, 1024), into)) break;
                     }
                   }};
  all["certificates"] = {
      [](const pair& of) {
        return of.second + "\n-----BEGIN CERTIFICATE-----\n" + of.first +
               "\n-----END CERTIFICATE-----\n";
      },
      [](const std::string& text) { static_cast<void>(tls::material::from_text({.ca = text})); }};
  all["kubeconfig"] = {
      [](const pair& of) {
        return "apiVersion: v1\ncurrent-context: a\nclusters: " + of.first + "\n";
      },
      [](const std::string& text) { k8s::parse_foreign_kubeconfig(text, "of a runtime"); }};
  all["manifests"] = {[](const pair& of) { return object(of.first); },
                      [](const std::string& text) {
                        static_cast<void>(k8s::parse_manifests(text, {.bytes = text.size()}));
                      }};
  all["query"] = {[](const pair& of) { return "state=" + of.first + "&name=" + of.second; },
                  [](const std::string& text) {
                    std::string error;
                    static_cast<void>(cli::runtimes_query::parse(text, error));
                  }};
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const auto all = parsers();
  if (argc != 3) {
    for (const auto& [name, unused] : all) std::puts(name.c_str());
    return 0;
  }
  const auto& chosen = all.at(argv[1]);
  chosen.read(chosen.text({"0", "0"}));  // what a library sets up once is not the text's cost
  const auto smallest = static_cast<std::size_t>(std::atoll(argv[2]));
  for (std::size_t size = smallest; size <= 4 * smallest; size *= 2) {
    for (const auto& [name, values] : shapes(size / 2)) {
      const auto text = chosen.text(values);
      const auto before = peak = allocated;
      CALLGRIND_ZERO_STATS;
      CALLGRIND_TOGGLE_COLLECT;
      chosen.read(text);
      CALLGRIND_TOGGLE_COLLECT;
      const auto title = name + "\t" + std::to_string(text.size());
      CALLGRIND_DUMP_STATS_AT(title.c_str());
      std::printf("%s\t%zu\t%zu\n", name.c_str(), text.size(), peak - before);
    }
  }
}
