# cmake -DSOURCE=<project> -DWORK=<scratch> -DCOMPILER=<c++> -DLINKER=<flags> -P incomplete.cmake
# What is not built yet is not half installed: the message names the target, which deploy/quickstart.sh builds.
file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_EXE_LINKER_FLAGS=${LINKER} -DRW_TESTS=OFF -DRW_BENCH=OFF RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${out}")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} --install ${WORK}/build --prefix ${WORK}/prefix
    RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
string(REGEX REPLACE "[ \n]+" " " out "${out}")
if(code EQUAL 0 OR NOT out MATCHES "librw_core.a is not built; first: cmake --build [^ ]+ --target installed")
  message(FATAL_ERROR "no message that names the target: ${out}")
endif()
if(EXISTS ${WORK}/prefix)
  message(FATAL_ERROR "a part was installed")
endif()
file(READ ${SOURCE}/deploy/quickstart.sh quickstart)
if(NOT quickstart MATCHES "cmake --build --preset release --target installed\n")
  message(FATAL_ERROR "deploy/quickstart.sh does not build the target `installed`")
endif()
