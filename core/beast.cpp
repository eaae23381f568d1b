// Compiles Beast, once; see BOOST_BEAST_SEPARATE_COMPILATION in CMakeLists.txt.
#include <boost/beast/src.hpp>
