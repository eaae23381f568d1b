#include "rw/reactors/cli/commands.hpp"

int main(int argc, char** argv) {
  rw::cli::settings settings;
  return rw::cli::run_program("runtime-watcher", rw::cli::about, rw::cli::commands_of(settings),
                              argc, argv);
}
