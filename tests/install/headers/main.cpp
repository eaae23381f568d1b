#include "use.hpp"

int main() {
  use_queues();
  use_tasks();
  use_observability();
  use_http();
  use_tls();
  use_kubernetes_client();
  use_kubernetes_objects();
  use_kubernetes_cache();
  use_kubernetes_controller();
  use_devserver();
  use_listener();
  use_webhook();
}
