#!/usr/bin/env bash
# Records the binary interface that rw.h declares, after a change of it that is wanted: a test compares it with the record.
#
#   reactors/capi/record-abi.sh [FILE]     default: reactors/capi/rw.abi
#
# A function may come; none may go or change, unless the library gets another name (SOVERSION in reactors/capi/CMakeLists.txt).
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
case "${1:-}" in
  -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
esac
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# libabigail reads the types of functions that are defined, so each one gets a body.
python3 - "$here/rw.h" >"$work/rw.c" <<'PYTHON'
import re, sys
header = re.sub(r"/\*.*?\*/", "", open(sys.argv[1]).read(), flags=re.DOTALL)
print('#include <stdlib.h>\n#include "rw.h"')
for declaration in re.findall(r"^(?!typedef)[\w ]+[ *]+rw_\w+\([^)]*\);", header, flags=re.MULTILINE):
    print(declaration[:-1], "{ abort(); }")
PYTHON
"${CC:-clang-19}" -g -fPIC -shared -Wno-unused -I"$here" -o "$work/librw.so" "$work/rw.c"
abidw --no-corpus-path --no-comp-dir-path --no-show-locs --headers-dir "$here" "$work/librw.so" |
  sed "s#path='[^']*'#path='rw.h'#" >"$work/rw.abi"
mv "$work/rw.abi" "${1:-$here/rw.abi}"
