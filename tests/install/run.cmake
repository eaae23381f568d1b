# cmake -DBUILD=<build dir> -DSOURCE=<this dir> -DWORK=<scratch> -DCOMPILER=<c++> -DLINKER=<flags> -P run.cmake
# Installs the build into a prefix of its own, moves that (nothing may depend on where it was), and
# builds and runs the project beside this file against it.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGV}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/installed)
file(RENAME ${WORK}/installed ${WORK}/moved)
file(GLOB_RECURSE packages ${WORK}/moved/*.cmake)
foreach(package ${packages})
  file(READ ${package} text)
  foreach(place ${BUILD} ${SOURCE})
    string(FIND "${text}" "${place}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${package} names ${place}")
    endif()
  endforeach()
endforeach()
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_EXE_LINKER_FLAGS=${LINKER} -DCMAKE_PREFIX_PATH=${WORK}/moved)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/embedder)
run(${WORK}/moved/bin/runtime-watcher version)
