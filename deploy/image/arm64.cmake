# Cross-compiles for arm64 with clang: against the libraries of deploy/image/sysroot.sh, which makes their folder if there is none.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)

include(${CMAKE_CURRENT_LIST_DIR}/../clang.cmake)
execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/sysroot.sh arm64
                OUTPUT_VARIABLE CMAKE_SYSROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
# Headers name themselves in messages: as those of the system do. clang finds gcc's folder below lib/ otherwise, a link, and so has
# names of headers that ninja shortens to others, which are not there: it would build all again each time.
set(CMAKE_CXX_FLAGS_INIT "-ffile-prefix-map=${CMAKE_SYSROOT}= --gcc-install-dir=${CMAKE_SYSROOT}/usr/lib/gcc/aarch64-linux-gnu/12")

# pkg-config speaks of the libraries in that folder.
set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
