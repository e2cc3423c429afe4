# What `cmake --install` puts where, and the Debian packages that CPack makes of it. Programs find their libraries by paths
# relative to themselves, so an installation runs from any prefix. tools/make_wheel.py makes the Python wheel of the same files.
#
#   compiler   bin/shardc, documentation, schemas, licences; no LibTorch
#   runtime    bin/shardc-run
#   cuda       bin/shardc-run-cuda if it is built, without the libraries of CUDA (docs/gpu.md)
#   libtorch   lib/shardc: the LibTorch libraries that both need

# Builds the programs that are installed.
add_custom_target(packaged_programs)

# The programs look for libraries in LibTorch's folder, and installed in lib/shardc. If CMake is told both paths, it ends the one of
# the build with colons, and an empty entry of the path is the working directory of whoever starts the program. So CMake is told one
# path, and an installation changes it. FOLDERS... are further ones that the program of the build looks in.
function(shardc_install_program program component)
  add_dependencies(packaged_programs ${program})
  set(folders ${LIBTORCH}/lib ${ARGN})
  list(JOIN folders ":" path)
  set_target_properties(${program} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${folders}")
  install(TARGETS ${program} RUNTIME DESTINATION bin COMPONENT ${component})
  install(CODE "file(RPATH_CHANGE FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin/${program}\"
    OLD_RPATH \"${path}\" NEW_RPATH \"\\$ORIGIN/../lib/shardc\")" COMPONENT ${component})
endfunction()
shardc_install_program(shardc compiler)
shardc_install_program(shardc-run runtime)
if(TARGET shardc-run-cuda)
  shardc_install_program(shardc-run-cuda cuda ${SHARDC_CUDA_FOLDERS})
  # The one library of headers of NVIDIA's that is inside.
  file(GLOB licences ${CMAKE_SOURCE_DIR}/.deps/cuda/licences/nvidia_cudnn_frontend-*)
  install(FILES ${licences} DESTINATION share/doc/shardc-cuda/licences COMPONENT cuda)
  install(FILES docs/LICENSE DESTINATION share/doc/shardc-cuda COMPONENT cuda)
endif()
install(FILES README.md docs/LICENSE DESTINATION share/doc/shardc COMPONENT compiler)
install(FILES docs/LICENSE DESTINATION share/doc/shardc-runtime COMPONENT runtime)
# As in the repository, so that links between these files hold.
install(DIRECTORY docs/ DESTINATION share/doc/shardc/docs COMPONENT compiler)
install(DIRECTORY recipes/ DESTINATION share/doc/shardc/recipes COMPONENT compiler FILES_MATCHING PATTERN *.toml PATTERN *.explain)
install(FILES schemas/recipe.schema.json schemas/plan_format.md schemas/random.md
  DESTINATION share/doc/shardc/schemas COMPONENT compiler)
# An installation makes the schema of plans, which follows from the tables of the program.
install(CODE "execute_process(COMMAND \"$<TARGET_FILE:shardc>\" schema --plan COMMAND_ERROR_IS_FATAL ANY
    OUTPUT_FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/doc/shardc/schemas/plan.schema.json\")" COMPONENT compiler)
install(FILES tests/gpu/last_run.json DESTINATION share/doc/shardc/tests/gpu COMPONENT compiler)
install(PROGRAMS tools/import_checkpoint.py tools/log_metrics.py tools/tokenize_text.py DESTINATION share/doc/shardc/tools COMPONENT compiler)
install(FILES tools/checkpoint_archives.py tools/checkpoint_names.py tools/checkpoint_output.py tools/checkpoint_sources.py
  tools/checkpoint_to_dcp.py tools/chat_messages.py tools/chat_options.py tools/chat_prefixes.py tools/chat_template.py tools/failure.py
  tools/tokenize_chats.py tools/tokenize_inputs.py tools/tokenize_job.py tools/tokenize_output.py tools/tokenize_report.py
  tools/tokenize_tasks.py DESTINATION share/doc/shardc/tools COMPONENT compiler)
install(FILES ${LIBTORCH}/lib/libtorch_cpu.so ${LIBTORCH}/lib/libc10.so ${LIBTORCH}/lib/libgomp.so.1
  ${LIBTORCH}/lib/libcudart.so.13 ${LIBTORCH}/lib/libcupti.so.13 DESTINATION lib/shardc COMPONENT libtorch)

# The licences of what is inside the programs: libraries of headers, and what is linked statically. Debian's packages have them.
function(shardc_install_licences component document)
  foreach(package IN LISTS ARGN)
    install(FILES /usr/share/doc/${package}/copyright DESTINATION share/doc/${document}/licences RENAME ${package}.txt
      COMPONENT ${component} OPTIONAL)
  endforeach()
endfunction()
shardc_install_licences(compiler shardc libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libfmt-dev libxxhash-dev
  libmimalloc-dev)
shardc_install_licences(runtime shardc-runtime libcli11-dev nlohmann-json3-dev libfmt-dev libxxhash-dev llvm-19-dev)
# `tools/dev setup` takes these out of the wheels.
install(DIRECTORY ${LIBTORCH}/licences/ DESTINATION share/doc/shardc-runtime/licences COMPONENT libtorch OPTIONAL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME shardc)
set(CPACK_PACKAGE_CONTACT "the shardc developers <shardc@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL compiler runtime libtorch)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${LIBTORCH}/lib)
# LibTorch would take minutes with xz.
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_COMPILER_PACKAGE_NAME shardc)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME shardc-runtime)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "shardc (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_COMPILER_DESCRIPTION
  "compiler for training runs\n Checks TOML recipes of training runs, shows what they cost, and makes the plans that shardc-runtime executes.")
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION
  "runtime of shardc, with its LibTorch\n Executes the plans of shardc: trains on the CPUs of one host or of several.")
# NVIDIA's packages are recommended, as the libraries may be those of a PyTorch. Debian's libraries are those of shardc-run.
set(CPACK_DEBIAN_CUDA_PACKAGE_NAME shardc-cuda)
set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "shardc-runtime (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_CUDA_PACKAGE_RECOMMENDS "libcublas-13-0, cuda-nvrtc-13-0, libcudnn9-cuda-13, libnccl2 (>= 2.18)")
set(CPACK_DEBIAN_CUDA_DESCRIPTION
  "runtime of shardc for GPUs of NVIDIA\n Executes the plans of shardc on GPUs, with the libraries of CUDA 13 and cuDNN 9, which others install.")
if(TARGET shardc-run-cuda)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
endif()
include(CPack)
cpack_add_component(compiler GROUP compiler)
cpack_add_component(runtime GROUP runtime)
cpack_add_component(libtorch GROUP runtime)
cpack_add_component(cuda GROUP cuda)
cpack_add_component_group(compiler)
cpack_add_component_group(runtime)
cpack_add_component_group(cuda)
