# cmake -DSOURCE=<project> -DWORK=<scratch> -P refuses_gcc.cmake
# A compiler that miscompiles coroutines must be refused, with a sentence that says so. Says
# "skipped" where there is no such g++.
find_program(GXX g++ NO_CACHE)
if(NOT GXX)
  message("skipped: there is no g++")
  return()
endif()
execute_process(COMMAND ${GXX} -dumpversion OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
if(version VERSION_GREATER_EQUAL 13)
  message("skipped: g++ ${version} is not refused")
  return()
endif()
file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK} -G Ninja -DCMAKE_CXX_COMPILER=${GXX}
                RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(code EQUAL 0)
  message(FATAL_ERROR "g++ ${version} was accepted")
endif()
string(REGEX REPLACE "[ \n]+" " " out "${out}")
if(NOT out MATCHES "gcc ${version}[.0-9]* miscompiles C\\+\\+20 coroutines")
  message(FATAL_ERROR "g++ ${version} was refused without the reason:\n${out}")
endif()
