# LLVM's static libraries: linked into what generates code, they start three times faster than the shared one, and no library of
# another version can take their place.

find_package(LLVM 19.1 REQUIRED CONFIG)
# LLVMSupport names Z3 (23 MB) for a solver that nothing here calls.
get_target_property(llvm_support LLVMSupport INTERFACE_LINK_LIBRARIES)
list(FILTER llvm_support EXCLUDE REGEX "[Zz]3")
set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES "${llvm_support}")
llvm_map_components_to_libnames(llvm_host orcjit native)
# shardc_llvm: code for the processor at hand.
add_library(shardc_llvm INTERFACE)
target_include_directories(shardc_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_link_libraries(shardc_llvm INTERFACE ${llvm_host})
# shardc_llvm_nvptx: code for NVIDIA's.
llvm_map_components_to_libnames(llvm_nvptx nvptxcodegen nvptxdesc nvptxinfo)
add_library(shardc_llvm_nvptx INTERFACE)
target_link_libraries(shardc_llvm_nvptx INTERFACE shardc_llvm ${llvm_nvptx})
