"""An operator in Python, through rw.h and ctypes: each event, and each resync, calls a function.

    kyma_operator.py LIBRARY [FLAG...]

LIBRARY is librw.so.0; the flags are those of `runtime-watcher listen`, to which --resyncs is added.
"""

import ctypes
import signal
import sys

EVENT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
VERIFY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
FAILED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class Callbacks(ctypes.Structure):
    _fields_ = [("event", EVENT), ("log", LOG), ("context", ctypes.c_void_p), ("verify", VERIFY), ("failed", FAILED)]


def load(path):
    library = ctypes.CDLL(path)
    for field in ("runtime_id", "resync", "kind", "namespace", "name"):
        accessor = getattr(library, f"rw_event_{field}")
        accessor.argtypes, accessor.restype = [ctypes.c_void_p], ctypes.c_char_p
    library.rw_listener_start.argtypes = [ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(Callbacks), ctypes.c_char_p, ctypes.c_size_t]
    library.rw_listener_start.restype = ctypes.c_void_p
    library.rw_listener_port.argtypes, library.rw_listener_port.restype = [ctypes.c_void_p], ctypes.c_uint16
    library.rw_listener_free.argtypes, library.rw_listener_free.restype = [ctypes.c_void_p], ctypes.c_size_t
    return library


def main():
    library = load(sys.argv[1])

    def reconcile(_, event):
        if library.rw_event_resync(event):  # here an operator looks at everything of the runtime
            return print(f"{library.rw_event_runtime_id(event).decode()}: resync", flush=True)
        runtime, kind, ns, name = (getattr(library, f"rw_event_{field}")(event).decode()
                                   for field in ("runtime_id", "kind", "namespace", "name"))
        print(f"{runtime}: {kind} {ns}/{name}", flush=True)

    callbacks = Callbacks(EVENT(reconcile), LOG(lambda _, line: print(line.decode(), file=sys.stderr, flush=True)))
    flags = [flag.encode() for flag in ["--resyncs", *sys.argv[2:]]] + [None]
    error = ctypes.create_string_buffer(512)
    listener = library.rw_listener_start((ctypes.c_char_p * len(flags))(*flags), callbacks, error, len(error))
    if not listener:
        sys.exit(error.value.decode())
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    print("port", library.rw_listener_port(listener), flush=True)
    signal.sigwait([signal.SIGTERM, signal.SIGINT])
    sys.exit(1 if library.rw_listener_free(listener) else 0)


if __name__ == "__main__":
    main()
