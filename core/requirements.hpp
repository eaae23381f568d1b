#pragma once

// What public headers with coroutines need of the compiler and its options, which the CMake targets
// and `pkg-config --cflags runtime_watcher` give. Each such header includes this.

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
#error \
    "gcc before 13 miscompiles C++20 coroutines: use gcc 13, clang 19, or the library for C, rw.h"
#endif
#if !defined(BOOST_ASIO_SEPARATE_COMPILATION) || !defined(BOOST_BEAST_SEPARATE_COMPILATION)
#error \
    "macros of Asio are missing: link runtime_watcher::core, or use pkg-config --cflags runtime_watcher"
#endif
