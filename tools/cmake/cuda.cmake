# The CUDA toolkit, with cuBLASLt, cuDNN and the headers of cudnn-frontend: of .deps/cuda, or of an installation.
#
#   SHARDC_HAS_NVCC   kernels are compiled (tools/dev setup --tests brings the compiler)
#   SHARDC_HAS_CUDA   the libraries are there too, and shardc-run-cuda is made (tools/dev build --cuda)

option(SHARDC_CUDA "Build what is for GPUs, as far as the CUDA toolkit is there" ON)
set(SHARDC_HAS_NVCC OFF)
set(SHARDC_HAS_CUDA OFF)
if(SHARDC_CUDA AND NOT (SHARDC_SANITIZE OR SHARDC_FUZZ OR SHARDC_SYNTAX_ONLY))
  set(roots ${CMAKE_SOURCE_DIR}/.deps/cuda $ENV{CUDA_HOME} /usr/local/cuda)
  find_program(SHARDC_NVCC nvcc HINTS ${roots} PATH_SUFFIXES bin)
  set(missing "")
  if(SHARDC_NVCC)
    set(SHARDC_HAS_NVCC ON)
  else()
    list(APPEND missing nvcc)
  endif()
  foreach(header IN ITEMS cuda_runtime cublasLt cudnn cudnn_frontend)
    find_path(SHARDC_${header}_INCLUDE ${header}.h HINTS ${roots} PATH_SUFFIXES include)
    if(NOT SHARDC_${header}_INCLUDE)
      list(APPEND missing ${header}.h)
    endif()
    list(APPEND cuda_includes ${SHARDC_${header}_INCLUDE})
  endforeach()
  # (cudnn-frontend names functions of NVRTC.)
  foreach(library IN ITEMS cudart cublasLt cudnn nvrtc)
    find_library(SHARDC_${library}_LIBRARY ${library} HINTS ${roots} PATH_SUFFIXES lib64 lib)
    if(NOT SHARDC_${library}_LIBRARY)
      list(APPEND missing lib${library}.so)
    endif()
    list(APPEND cuda_libraries ${SHARDC_${library}_LIBRARY})
    get_filename_component(folder ${SHARDC_${library}_LIBRARY} DIRECTORY)
    list(APPEND SHARDC_CUDA_FOLDERS ${folder})
  endforeach()
  if(missing)
    list(JOIN missing ", " missing)
    message(STATUS "shardc-run-cuda is left out; missing: ${missing}")
  else()
    set(SHARDC_HAS_CUDA ON)
    list(REMOVE_DUPLICATES cuda_includes)
    add_library(shardc_cuda_libraries INTERFACE)
    target_include_directories(shardc_cuda_libraries SYSTEM INTERFACE ${cuda_includes})
    # Of cudnn-frontend: nothing here reads or writes graphs as JSON.
    target_compile_definitions(shardc_cuda_libraries INTERFACE CUDNN_FRONTEND_SKIP_JSON_LIB)
    target_link_libraries(shardc_cuda_libraries INTERFACE ${cuda_libraries})
  endif()
endif()

# shardc_cuda_units(RESULT FILE FIRST_LINES SOURCES...) writes texts that include *.cu files, ten each: most of what one takes to
# compile is the same headers. FILE gets a number before its extension.
function(shardc_cuda_units result file first_lines)
  cmake_path(GET file EXTENSION LAST_ONLY extension)
  cmake_path(REMOVE_EXTENSION file LAST_ONLY OUTPUT_VARIABLE stem)
  set(sources ${ARGN})
  list(SORT sources)
  set(units "")
  set(at 0)
  list(LENGTH sources count)
  while(at LESS count)
    list(SUBLIST sources ${at} 10 part)
    math(EXPR at "${at} + 10")
    set(text "${first_lines}")
    foreach(source IN LISTS part)
      string(APPEND text "#include \"${source}\"\n")
    endforeach()
    list(LENGTH units batch)
    file(CONFIGURE OUTPUT ${stem}_${batch}${extension} CONTENT "${text}" @ONLY)
    list(APPEND units ${stem}_${batch}${extension})
  endwhile()
  set(${result} ${units} PARENT_SCOPE)
endfunction()

# shardc_cuda_objects(RESULT SOURCES...) compiles *.cu files. RESULT gets the objects. Beside each lies its .resources: the
# registers, spills and shared memory of its kernels.
function(shardc_cuda_objects result)
  shardc_cuda_units(units ${CMAKE_CURRENT_BINARY_DIR}/cuda.cu "" ${ARGN})
  set(objects "")
  foreach(unit IN LISTS units)
    cmake_path(REMOVE_EXTENSION unit LAST_ONLY OUTPUT_VARIABLE stem)
    add_custom_command(OUTPUT ${stem}.o BYPRODUCTS ${stem}.resources
      COMMAND sh -c "\"$@\" 2> ${stem}.resources || { cat ${stem}.resources; exit 1; }" nvcc
        ${CMAKE_CXX_COMPILER_LAUNCHER} ${SHARDC_NVCC} -ccbin ${CMAKE_CXX_COMPILER} -std=c++20 -O3 -DNDEBUG
        -DFMT_USE_CONSTEXPR=1 -gencode arch=compute_90,code=[sm_90,compute_90] -Xptxas=-v
        # 128: a loop after the return of an `if constexpr`.
        -Werror=all-warnings -diag-suppress=128
        -Xcompiler=-Wall,-Wno-restrict,-ffile-prefix-map=${CMAKE_SOURCE_DIR}/= -I${CMAKE_SOURCE_DIR}
        -MD -MF ${stem}.d -c ${unit} -o ${stem}.o
      DEPENDS ${unit} DEPFILE ${stem}.d COMMENT "Compiling kernels for GPUs: ${unit}" VERBATIM)
    list(APPEND objects ${stem}.o)
    set_property(GLOBAL APPEND PROPERTY shardc_kernel_resources ${stem}.resources)
  endforeach()
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set(${result} ${objects} PARENT_SCOPE)
endfunction()
