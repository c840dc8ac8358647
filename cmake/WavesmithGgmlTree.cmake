# Reads from a llama.cpp source tree what ggml/tree_identity.cpp compares with the running program.

# Operation names in order, as a list in `result`: the strings of GGML_OP_NAME in ggml.c.
function(wavesmith_read_op_names ggml_dir result)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ggml_dir}/src/ggml.c)
    file(READ ${ggml_dir}/src/ggml.c text)
    string(REGEX MATCH "GGML_OP_NAME\\[GGML_OP_COUNT\\] = {([^}]*)}" table "${text}")
    string(REGEX MATCHALL "\"[^\"]+\"" names "${CMAKE_MATCH_1}")
    if (NOT names)
        message(FATAL_ERROR "${ggml_dir}/src/ggml.c has no table of operation names; this llama.cpp is not supported")
    endif()
    set(${result} "${names}" PARENT_SCOPE)
endfunction()

# The version of a tree, "0.25.3", from ggml/CMakeLists.txt.
function(wavesmith_read_ggml_version ggml_dir result)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ggml_dir}/CMakeLists.txt)
    file(READ ${ggml_dir}/CMakeLists.txt text)
    set(version "")
    foreach (part MAJOR MINOR PATCH)
        if (NOT text MATCHES "set\\(GGML_VERSION_${part} ([0-9]+)\\)")
            message(FATAL_ERROR "${ggml_dir}/CMakeLists.txt sets no GGML_VERSION_${part}; this llama.cpp is not supported")
        endif()
        list(APPEND version ${CMAKE_MATCH_1})
    endforeach()
    list(JOIN version "." version)
    set(${result} ${version} PARENT_SCOPE)
endfunction()

# Asks a built libggml-base for its version and commit. A module for another version than the library's would never load,
# so a library that does not belong to the tree is an error here already.
function(wavesmith_ask_ggml_library library include_dir version_result commit_result)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/ask-ggml.cpp)
    file(WRITE ${source} "#include <stdio.h>\n#include \"ggml.h\"\nint main() { printf(\"%s %s\", ggml_version(), ggml_commit()); }\n")
    try_run(ran compiled ${CMAKE_CURRENT_BINARY_DIR}/ask-ggml ${source}
        CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${include_dir}
        LINK_LIBRARIES ${library}
        COMPILE_OUTPUT_VARIABLE compile_output
        RUN_OUTPUT_VARIABLE output)
    if (NOT compiled OR NOT ran EQUAL 0 OR NOT output MATCHES "^([^ ]+) ([^ ]+)$")
        message(FATAL_ERROR "${library} cannot be used as the ggml-base library of ${include_dir}:\n${compile_output}${output}")
    endif()
    set(${version_result} ${CMAKE_MATCH_1} PARENT_SCOPE)
    set(${commit_result} ${CMAKE_MATCH_2} PARENT_SCOPE)
endfunction()

# Generates wavesmith-ggml-tree.h for `target`.
function(wavesmith_set_ggml_tree target ggml_dir version commit)
    wavesmith_read_op_names(${ggml_dir} names)
    list(JOIN names ", " names)
    set(directory ${CMAKE_CURRENT_BINARY_DIR}/ggml-tree)
    file(CONFIGURE OUTPUT ${directory}/wavesmith-ggml-tree.h @ONLY CONTENT
"// The ggml that this module is built for.
static const char built_version[] = \"${version}\";
static const char built_commit[]  = \"${commit}\";
static const char * const built_op_names[] = { ${names} };
")
    target_include_directories(${target} PRIVATE ${directory})
endfunction()
