# The standard library and fmt as precompiled headers: they are most of what a small file costs to compile. Files still name
# every header that they use: tools/check/includes.py shows what one forgot, and `tools/dev syntax` asks the compiler.

set(precompiled_headers <algorithm> <array> <charconv> <cmath> <cstdint> <cstring> <filesystem> <fstream> <functional> <map>
  <memory> <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)

# shardc_precompiled(NAME OPTIONS...): one compilation of them, for all targets with these compile options to reuse.
function(shardc_precompiled name)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cpp CONTENT "")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE fmt::fmt)
  target_compile_options(${name} PRIVATE ${ARGN})
  target_precompile_headers(${name} PRIVATE ${precompiled_headers})
endfunction()

shardc_precompiled(shardc_precompiled)
