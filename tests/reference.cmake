# cmake -DDOXYGEN=<doxygen> -DBUILD=<build dir> -P reference.cmake, in the root
# The reference begins with its front page, and names headers as a program includes them.
execute_process(COMMAND ${DOXYGEN} ${BUILD}/Doxyfile COMMAND_ERROR_IS_FATAL ANY)
foreach(expected "index=find_package(runtime_watcher" "index=pkg-config" "classrw_1_1core_1_1channel=&lt;<a class=\"el\""
                 "classrw_1_1core_1_1channel=rw/core/channel.hpp")
  string(REGEX MATCH "^([^=]*)=(.*)$" all "${expected}")
  set(part ${CMAKE_MATCH_2})
  file(READ ${BUILD}/reference/html/${CMAKE_MATCH_1}.html page)
  string(FIND "${page}" "${part}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${CMAKE_MATCH_1}.html does not have: ${part}")
  endif()
endforeach()
