# Makes a memory error harder to exploit: the compiler and linker options of the OpenSSF's "Compiler Options Hardening
# Guide for C and C++" that cost next to nothing here. tests/hardening.py checks the executables for them.
include(CheckPIESupported)

check_pie_supported(LANGUAGES CXX)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_compile_options(-fstack-protector-strong -fstack-clash-protection -ftrivial-auto-var-init=zero)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  add_compile_options(-mbranch-protection=standard)
endif()
# Fortified functions need optimisation, and hide errors from sanitizers.
if(CMAKE_BUILD_TYPE MATCHES "Rel" AND NOT RW_SANITIZE)
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
endif()
add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
