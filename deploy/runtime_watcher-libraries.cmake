# Libraries that come without a CMake package of their own; for this build and, installed, for those
# who link against it. Programs get nghttp2 and RE2 as static libraries, where the distribution has them; shared libraries
# do not, since those are not compiled for that.
foreach(library nghttp2 prometheus re2)
  if(TARGET runtime_watcher::${library})
    continue()
  endif()
  add_library(runtime_watcher::${library} INTERFACE IMPORTED)
  if(library STREQUAL prometheus)
    find_library(RW_PROMETHEUS NAMES prometheus-cpp-core REQUIRED)
    target_link_libraries(runtime_watcher::prometheus INTERFACE ${RW_PROMETHEUS})
    continue()
  endif()
  string(TOUPPER ${library} name)
  find_library(RW_${name} NAMES lib${library}.a ${library} REQUIRED)
  find_library(RW_${name}_SHARED NAMES ${library} REQUIRED)
  target_link_libraries(runtime_watcher::${library} INTERFACE
    $<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>,${RW_${name}_SHARED},${RW_${name}}>)
endforeach()
