# Language, warnings, optimisation, linker. Applies to every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
if(SHARDC_SANITIZE)
  # Compiled oftener than run: -Og takes a quarter less time to compile than -O1. It does not inline all that xxhash wants
  # inlined.
  set(CMAKE_CXX_FLAGS_RELEASE "-Og -DNDEBUG -DXXH_NO_INLINE_HINTS=1")
endif()
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g -D_GLIBCXX_ASSERTIONS")

# Several files compiled as one: a full build takes half the time. The debug build compiles each by itself, and gives editors a
# compile_commands.json by file.
set(unity ON)
if(CMAKE_BUILD_TYPE STREQUAL Debug)
  set(unity OFF)
endif()
option(CMAKE_UNITY_BUILD "Compile several files as one" ${unity})
# compiler/verify, 34 files, takes 90 s of a core in units of 12, 76 s in units of 24 and 67 s as one. Under the sanitizers, which
# build from nothing most of the time, a folder is one unit; else a change of a file should not cost that much.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 24)
if(SHARDC_SANITIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 40)
endif()

# missing-field-initializers: g++ 12 reports designated initialisers whose other members have defaults.
# restrict, array-bounds: false reports from std::string in g++ 12 (GCC PR 105651); the second depends on how long the name of
# the folder is that holds the sources.
add_compile_options(-Wall -Wextra -Werror -Werror=switch -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual -Wvla
  -Wextra-semi -Wno-missing-field-initializers -Wno-restrict -Wno-error=array-bounds)

# Messages and CHECKs name files as the repository does, and builds in other folders give the same objects.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
include_directories(${CMAKE_SOURCE_DIR})

if(SHARDC_SANITIZE)
  set(checks address,undefined)
  if(SHARDC_SANITIZE_QUICK)
    # AddressSanitizer alone takes 1.25 of the time to compile, with all of `undefined` 2.1 to 2.3, with these 1.3.
    set(checks address,signed-integer-overflow,shift,integer-divide-by-zero,bounds,float-cast-overflow,bool,enum,unreachable)
  endif()
  # maybe-uninitialized: the sanitizers' own code confuses it.
  add_compile_options(-fsanitize=${checks} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1
    -D_GLIBCXX_ASSERTIONS -Wno-maybe-uninitialized)
  add_link_options(-fsanitize=${checks})
endif()

if(SHARDC_FUZZ)
  # What clang thinks of the sources is not asked here; g++ judges them.
  add_compile_options(-fsanitize=fuzzer-no-link -w -Wno-unknown-warning-option)
endif()

# Precompiled headers need the sloppiness, and -fpch-preprocess.
find_program(CCACHE ccache)
if(CCACHE AND NOT SHARDC_SYNTAX_ONLY AND NOT SHARDC_FUZZ)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  add_compile_options(-fpch-preprocess)
endif()

find_program(MOLD mold)
find_program(LLD ld.lld)
if(MOLD)
  add_link_options(-fuse-ld=mold)
elseif(LLD)
  add_link_options(-fuse-ld=lld)
endif()
