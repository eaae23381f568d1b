# Puts the revision of the sources and its time into a source file of their own, so that another commit compiles no more than that.
# Sets VERSION_SOURCE. The revision is RW_REVISION, or HEAD of this checkout when it is configured; the time is SOURCE_DATE_EPOCH of
# the environment (reproducible-builds.org), or that of the commit.
set(revision "${RW_REVISION}")
set(time "")
find_program(RW_GIT git)
function(rw_git result)
  set(out "")
  if(RW_GIT AND EXISTS ${CMAKE_SOURCE_DIR}/.git)
    execute_process(COMMAND ${CMAKE_COMMAND} -E env TZ=UTC ${RW_GIT} ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
                    OUTPUT_VARIABLE out OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  set(${result} "${out}" PARENT_SCOPE)
endfunction()
if(revision STREQUAL "")
  rw_git(revision rev-parse --short=12 HEAD)
endif()
if("$ENV{SOURCE_DATE_EPOCH}" GREATER 0)
  string(TIMESTAMP time "%Y-%m-%dT%H:%M:%SZ" UTC)
elseif(NOT revision STREQUAL "")
  rw_git(time log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd ${revision})
endif()
set(VERSION_SOURCE ${CMAKE_CURRENT_BINARY_DIR}/version.cpp)
file(CONFIGURE OUTPUT ${VERSION_SOURCE} CONTENT "namespace rw::cli {
extern const char* const source_revision;
const char* const source_revision = \"@revision@\";
extern const char* const source_time;
const char* const source_time = \"@time@\";
}  // namespace rw::cli
" @ONLY)
