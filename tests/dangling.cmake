# cmake -DCOMPILER=<clang++> -DSOURCE=<project> -DINCLUDE=<build>/include -P dangling.cmake
# A view into an argument that is gone does not compile, for each function that returns one.
if(NOT COMPILER MATCHES "clang")
  message("skipped: ${COMPILER} does not know lifetimebound")
  return()
endif()
foreach(part RANGE 0 7)
  execute_process(
    COMMAND ${COMPILER} -std=c++20 -fsyntax-only -Werror=dangling -DPART=${part} -I${INCLUDE} ${SOURCE}/tests/dangling.cpp
    RESULT_VARIABLE code ERROR_VARIABLE out)
  if(part EQUAL 0 AND NOT code EQUAL 0)
    message(FATAL_ERROR "what is right does not compile:\n${out}")
  endif()
  if(part GREATER 0 AND (code EQUAL 0 OR NOT out MATCHES "Wdangling"))
    message(FATAL_ERROR "part ${part} of tests/dangling.cpp compiles, or fails for another reason:\n${out}")
  endif()
endforeach()
