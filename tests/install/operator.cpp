// Keeps a plan of each Backup in a ConfigMap that the Backup owns, and says so in its status.
#include <rw/k8s/controller/operator_host.hpp>

namespace k8s = rw::k8s;

struct backup_spec {
  std::string schedule = "@daily";
};
BOOST_DESCRIBE_STRUCT(backup_spec, (), (schedule))

struct backup_status {
  std::string phase;
};
BOOST_DESCRIBE_STRUCT(backup_status, (), (phase))

struct backup {
  k8s::object_meta metadata;
  backup_spec spec;
  std::optional<backup_status> status;
  static inline const k8s::resource_type type{{"example.com", "v1", "Backup"}, "backups"};
};
BOOST_DESCRIBE_STRUCT(backup, (), (metadata, spec, status))

struct config_map {
  k8s::object_meta metadata;
  std::map<std::string, std::string> data;
  static inline const k8s::resource_type type{{"", "v1", "ConfigMap"}, "configmaps"};
};
BOOST_DESCRIBE_STRUCT(config_map, (), (metadata, data))

boost::asio::awaitable<k8s::reconcile_result> reconcile(k8s::operator_request<backup> of) {
  config_map plan{{.name = of.key().name + "-plan"}, {{"schedule", of.object.spec.schedule}}};
  const auto applied = co_await of.apply(std::move(plan));
  if (!applied) co_return k8s::reconcile_result::error(applied.error());
  const auto written = co_await of.set_status(backup_status{"Planned"});
  co_return written ? k8s::reconcile_result::done() : k8s::reconcile_result::error(written.error());
}

int main(int argc, char** argv) {
  k8s::operator_host host({.name = "backup-operator"});
  host.watch<backup>().owns(config_map::type).run(reconcile);
  return host.run(argc, argv);
}
