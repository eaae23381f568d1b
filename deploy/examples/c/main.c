/* An operator in C: waits for events with poll(2), and ends at SIGTERM. */
#include <poll.h>
#include <rw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>

int main(int argc, char** argv) {
  const char* const flags[] = {argc > 1 ? argv[1] : "--address=127.0.0.1:8082", "--component=lifecycle-manager",
                               "--resyncs", NULL};
  char error[512];
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigprocmask(SIG_BLOCK, &ends, NULL);
  rw_listener* listener = rw_listener_start(flags, NULL, error, sizeof error);
  if (listener == NULL) {
    fprintf(stderr, "%s\n", error);
    return 2;
  }
  printf("port %u\n", rw_listener_port(listener));
  fflush(stdout);
  struct pollfd waiting[] = {{rw_listener_fd(listener), POLLIN, 0}, {signalfd(-1, &ends, 0), POLLIN, 0}};
  for (;;) {
    rw_event* event;
    const int next = rw_listener_next(listener, &event);
    if (next == RW_ENDED) break;
    if (next == RW_EVENT) {
      if (rw_event_resync(event) != NULL) { /* here an operator looks at everything of the runtime */
        printf("%s: resync\n", rw_event_runtime_id(event));
      } else {
        printf("%s: %s %s/%s\n", rw_event_runtime_id(event), rw_event_kind(event), rw_event_namespace(event), rw_event_name(event));
      }
      fflush(stdout);
      rw_event_free(event);
      continue;
    }
    poll(waiting, 2, -1);
    if (waiting[1].revents != 0) {
      rw_listener_drain(listener);
      waiting[1].fd = -1; /* no longer waited for */
    }
  }
  return rw_listener_free(listener) == 0 ? 0 : 1;
}
