#error "the host's own core/log.hpp was included by a header of runtime_watcher"
