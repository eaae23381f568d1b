// CMake makes a precompiled header only for a source that uses it. main.cpp does not.
