# Builds modules of custom kernels together with ggml.
#
#   GGML_CUSTOM_KERNELS        names of the modules, separated by semicolons
#   <NAME>_PATH                directory of a module's CMakeLists.txt; relative to CMAKE_SOURCE_DIR
#   GGML_CUSTOM_KERNELS_ORDER  the same names in the order in which they are asked; needed when there is more than one
#   GGML_CUSTOM_KERNELS_HOST   also build the modules' host backends where a GPU backend is built
#
# A module's directory is added once per platform, with GGML_CUSTOM_KERNELS_PLATFORM set to
#
#   host       it calls ggml_add_backend_library(ggml-<name> ...), whose library has ggml_backend_<name>_reg() and, with
#              GGML_BACKEND_DL, GGML_BACKEND_DL_IMPL
#   hip, cuda  it defines an OBJECT library ggml-custom-kernels-<name>, which has ggml_custom_kernels_module_<name>() of
#              ggml-custom-kernels.h, and becomes part of ggml-hip or ggml-cuda
#
# and GGML_CUSTOM_KERNELS_INCLUDE_DIRS set to the directories of ggml's public and implementation headers, which are also
# added to the target.

set(GGML_CUSTOM_KERNELS_SOURCE_DIR "${CMAKE_CURRENT_LIST_DIR}")
set(GGML_CUSTOM_KERNELS_LIST_DIR "${CMAKE_CURRENT_BINARY_DIR}/custom-kernels")

function(ggml_custom_kernels_check_names)
    set(seen "")
    foreach (name IN LISTS GGML_CUSTOM_KERNELS)
        if (NOT name MATCHES "^[a-z][a-z0-9_]*$")
            message(FATAL_ERROR "GGML_CUSTOM_KERNELS: '${name}' is not a module name (lower-case letters, digits and _)")
        endif()
        if (name IN_LIST seen)
            message(FATAL_ERROR "GGML_CUSTOM_KERNELS names '${name}' twice")
        endif()
        list(APPEND seen ${name})
    endforeach()

    list(LENGTH GGML_CUSTOM_KERNELS count)
    if (count GREATER 1 OR GGML_CUSTOM_KERNELS_ORDER)
        set(names ${GGML_CUSTOM_KERNELS})
        set(order ${GGML_CUSTOM_KERNELS_ORDER})
        list(SORT names)
        list(SORT order)
        if (NOT "${names}" STREQUAL "${order}")
            string(REPLACE ";" ", " listed "${GGML_CUSTOM_KERNELS}")
            string(REPLACE ";" ", " ordered "${GGML_CUSTOM_KERNELS_ORDER}")
            message(FATAL_ERROR "GGML_CUSTOM_KERNELS lists ${count} modules (${listed}). To use more than one, set "
                                "GGML_CUSTOM_KERNELS_ORDER to the same names in the order in which they are asked "
                                "(now: ${ordered})")
        endif()
    endif()
endfunction()

# Sets GGML_CUSTOM_KERNELS_DIR_<name> for every module, or stops with the variable that is wrong.
function(ggml_custom_kernels_find_directories)
    foreach (name IN LISTS GGML_CUSTOM_KERNELS)
        string(TOUPPER "${name}_PATH" variable)
        if (NOT ${variable})
            message(FATAL_ERROR "GGML_CUSTOM_KERNELS has '${name}' but ${variable} is not set; set it to the directory of the module")
        endif()
        get_filename_component(directory "${${variable}}" ABSOLUTE BASE_DIR "${CMAKE_SOURCE_DIR}")
        if (NOT EXISTS "${directory}/CMakeLists.txt")
            message(FATAL_ERROR "${variable}: no CMakeLists.txt in ${directory}")
        endif()
        set(GGML_CUSTOM_KERNELS_DIR_${name} "${directory}" PARENT_SCOPE)
    endforeach()
endfunction()

# The lists that ggml-backend-reg.cpp and ggml-cuda/custom-kernels.cuh go through.
function(ggml_custom_kernels_write_list)
    set(entries "")
    foreach (name IN LISTS GGML_CUSTOM_KERNELS)
        string(APPEND entries " X(${name})")
    endforeach()
    set(host "")
    if (GGML_CUSTOM_KERNELS_BUILD_HOST)
        set(host "${entries}")
    endif()
    file(GENERATE OUTPUT "${GGML_CUSTOM_KERNELS_LIST_DIR}/ggml-custom-kernels-list.h"
         CONTENT "#pragma once\n#define GGML_CUSTOM_KERNELS_HOST(X)${host}\n#define GGML_CUSTOM_KERNELS_DEVICE(X)${entries}\n")
endfunction()

# Compiles one source file of the current directory's target with the list in reach.
function(ggml_custom_kernels_use_list source)
    set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_DEFINITIONS GGML_CUSTOM_KERNELS)
    set_property(SOURCE "${source}" APPEND PROPERTY INCLUDE_DIRECTORIES "${GGML_CUSTOM_KERNELS_LIST_DIR}")
endfunction()

# Adds every module for a platform. For hip and cuda, `backend` is the target that the modules become part of.
function(ggml_custom_kernels_add platform)
    if (platform STREQUAL "host" AND NOT GGML_CUSTOM_KERNELS_BUILD_HOST)
        return()
    endif()
    set(GGML_CUSTOM_KERNELS_PLATFORM ${platform})
    foreach (name IN LISTS GGML_CUSTOM_KERNELS)
        if (platform STREQUAL "host")
            set(target ggml-${name})
        else()
            set(target ggml-custom-kernels-${name})
        endif()
        if (TARGET ${target})
            message(FATAL_ERROR "GGML_CUSTOM_KERNELS: '${name}' cannot be used, target ${target} already exists")
        endif()
        add_subdirectory("${GGML_CUSTOM_KERNELS_DIR_${name}}" "${GGML_CUSTOM_KERNELS_LIST_DIR}/${platform}-${name}")
        if (NOT TARGET ${target})
            message(FATAL_ERROR "GGML_CUSTOM_KERNELS: ${GGML_CUSTOM_KERNELS_DIR_${name}} does not define the target ${target} for platform ${platform}")
        endif()
        target_include_directories(${target} PRIVATE ${GGML_CUSTOM_KERNELS_INCLUDE_DIRS})
        if (NOT platform STREQUAL "host")
            set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
            target_link_libraries(ggml-${platform} PRIVATE ${target})
        endif()
        message(STATUS "Including custom kernels ${name} (${platform})")
    endforeach()
    if (GGML_CUSTOM_KERNELS AND NOT platform STREQUAL "host")
        ggml_custom_kernels_use_list("${CMAKE_CURRENT_SOURCE_DIR}/../ggml-cuda/ggml-cuda.cu")
    endif()
endfunction()

if (GGML_CUSTOM_KERNELS)
    ggml_custom_kernels_check_names()
    ggml_custom_kernels_find_directories()
    if (GGML_CUSTOM_KERNELS_ORDER)
        set(GGML_CUSTOM_KERNELS ${GGML_CUSTOM_KERNELS_ORDER})
    endif()
    set(GGML_CUSTOM_KERNELS_BUILD_HOST ON)
    if ((GGML_HIP OR GGML_CUDA) AND NOT GGML_CUSTOM_KERNELS_HOST)
        set(GGML_CUSTOM_KERNELS_BUILD_HOST OFF)
    endif()
    set(GGML_CUSTOM_KERNELS_INCLUDE_DIRS "${GGML_CUSTOM_KERNELS_SOURCE_DIR}/../include" "${GGML_CUSTOM_KERNELS_SOURCE_DIR}")
    ggml_custom_kernels_write_list()
    ggml_custom_kernels_use_list(ggml-backend-reg.cpp)
endif()
