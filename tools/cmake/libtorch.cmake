# LibTorch as imported targets, out of the folder that `tools/dev setup` fills. find_package(Torch) is not used: it insists on
# CUDA, and libtorch.so pulls in libtorch_cuda (340 MiB resident).

set(LIBTORCH ${CMAKE_SOURCE_DIR}/.deps/libtorch)
if(LIBTORCH MATCHES ":")
  message(FATAL_ERROR "${CMAKE_SOURCE_DIR} has a colon, at which the loader would split the path of LibTorch; rename the folder")
endif()
if(NOT EXISTS ${LIBTORCH}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "LibTorch is not in .deps/libtorch; run tools/dev setup")
endif()

# (Headers of imported targets are system headers: no warnings from them.)
add_library(c10 SHARED IMPORTED GLOBAL)
set_target_properties(c10 PROPERTIES
  IMPORTED_LOCATION ${LIBTORCH}/lib/libc10.so
  INTERFACE_INCLUDE_DIRECTORIES "${LIBTORCH}/include;${LIBTORCH}/include/torch/csrc/api/include")

# The OpenMP runtime that LibTorch brings: what compiles its headers has to use the same one.
add_library(gomp SHARED IMPORTED GLOBAL)
set_target_properties(gomp PROPERTIES IMPORTED_LOCATION ${LIBTORCH}/lib/libgomp.so.1)

# What libtorch_cpu needs in turn lies beside it, and its RPATH ends in $ORIGIN; the linker is told the same.
add_library(torch_cpu SHARED IMPORTED GLOBAL)
set_target_properties(torch_cpu PROPERTIES
  IMPORTED_LOCATION ${LIBTORCH}/lib/libtorch_cpu.so
  INTERFACE_LINK_LIBRARIES c10
  INTERFACE_LINK_OPTIONS "LINKER:--no-as-needed;LINKER:-rpath-link,${LIBTORCH}/lib")
