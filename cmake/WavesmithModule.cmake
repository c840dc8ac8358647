# The module ggml-wavesmith for the host target: inside the build of a patched llama.cpp, or alone against a built one.

include(WavesmithGgmlTree)

file(GLOB wavesmith_module_sources CONFIGURE_DEPENDS ${WAVESMITH_BACKEND_DIR}/ggml/*.cpp)
list(FILTER wavesmith_module_sources EXCLUDE REGEX "/ggml/hook_module.cpp$")
set(wavesmith_loader_source ${WAVESMITH_BACKEND_DIR}/ggml/module.cpp)

# Settings that both kinds of module share. `ggml_dir` is <llama.cpp>/ggml.
function(wavesmith_module_settings target ggml_dir version commit)
    wavesmith_host_settings(${target})
    wavesmith_set_ggml_tree(${target} ${ggml_dir} ${version} ${commit})
    # The headers that a backend needs are not all in the include folder of ggml-base.
    target_include_directories(${target} PRIVATE ${WAVESMITH_BACKEND_DIR}/ggml ${ggml_dir}/include ${ggml_dir}/src)
    target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

# In the build of llama.cpp, where ggml_add_backend_library and the target ggml-base exist. Only a module that is loaded at
# run time has loader functions: linked in, they would clash with those of other backends.
function(wavesmith_add_module_in_tree)
    wavesmith_add_kernels()
    set(sources ${wavesmith_module_sources})
    if (NOT GGML_BACKEND_DL)
        list(REMOVE_ITEM sources ${wavesmith_loader_source})
    endif()
    get_target_property(ggml_src ggml-base SOURCE_DIR)
    get_filename_component(ggml_dir ${ggml_src} DIRECTORY)
    wavesmith_read_ggml_version(${ggml_dir} tree_version)
    if (NOT GGML_BUILD_COMMIT)
        set(GGML_BUILD_COMMIT unknown)
    endif()
    ggml_add_backend_library(ggml-wavesmith ${sources} $<TARGET_OBJECTS:wavesmith-kernels>)
    wavesmith_module_settings(ggml-wavesmith ${ggml_dir} ${tree_version} ${GGML_BUILD_COMMIT})
endfunction()

# Alone: a module file for the llama.cpp whose sources are WAVESMITH_GGML_TREE and whose built libggml-base is
# WAVESMITH_GGML_LIBRARY.
function(wavesmith_add_module_standalone)
    get_filename_component(tree "${WAVESMITH_GGML_TREE}" ABSOLUTE BASE_DIR ${CMAKE_BINARY_DIR})
    set(ggml_dir ${tree}/ggml)
    if (NOT EXISTS ${ggml_dir}/src/ggml-backend-impl.h)
        message(FATAL_ERROR "WAVESMITH_GGML_TREE=${WAVESMITH_GGML_TREE} is no llama.cpp source tree (ggml/src/ggml-backend-impl.h is missing)")
    endif()
    if (NOT WAVESMITH_GGML_LIBRARY OR NOT EXISTS "${WAVESMITH_GGML_LIBRARY}")
        message(FATAL_ERROR "WAVESMITH_GGML_LIBRARY=${WAVESMITH_GGML_LIBRARY} does not exist; give the libggml-base.so built from WAVESMITH_GGML_TREE")
    endif()
    wavesmith_read_ggml_version(${ggml_dir} tree_version)
    wavesmith_ask_ggml_library(${WAVESMITH_GGML_LIBRARY} ${ggml_dir}/include library_version library_commit)
    if (NOT library_version VERSION_EQUAL tree_version)
        message(FATAL_ERROR "${WAVESMITH_GGML_LIBRARY} is ggml ${library_version}, but ${tree} is ggml ${tree_version}")
    endif()
    message(STATUS "wavesmith: module for ggml ${library_version} (${library_commit})")

    wavesmith_add_kernels()
    add_library(ggml-wavesmith MODULE ${wavesmith_module_sources} $<TARGET_OBJECTS:wavesmith-kernels>)
    wavesmith_module_settings(ggml-wavesmith ${ggml_dir} ${library_version} ${library_commit})
    target_compile_definitions(ggml-wavesmith PRIVATE GGML_BACKEND_DL GGML_SHARED GGML_BACKEND_SHARED GGML_BACKEND_BUILD)
    target_link_libraries(ggml-wavesmith PRIVATE ${WAVESMITH_GGML_LIBRARY})
    # No path to the library: the module must use the copy that the program has loaded.
    set_target_properties(ggml-wavesmith PROPERTIES SKIP_BUILD_RPATH ON LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()
