// The one place where Beast is compiled; see BOOST_BEAST_SEPARATE_COMPILATION in CMakeLists.txt.
#include <boost/beast/src.hpp>
