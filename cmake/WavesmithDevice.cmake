# The module of a GPU backend: the object library ggml-custom-kernels-wavesmith, which a patched llama.cpp links into ggml-hip or
# ggml-cuda (GGML_CUSTOM_KERNELS_PLATFORM).

include(WavesmithHost)

# Families as in backend/arch/arch.h, in order, with the targets of each: what CMAKE_HIP_ARCHITECTURES may name.
set(wavesmith_family_targets
    "gfx906"
    "gfx90a"
    "gfx942"
    "gfx950"
    "gfx1030 gfx1031 gfx1032 gfx1034 gfx1035 gfx1036"
    "gfx1100 gfx1101 gfx1102 gfx1103"
    "gfx1150 gfx1151 gfx1152 gfx1153"
    "gfx1200 gfx1201"
    "cuda")

# The families of a list of targets as a number with a bit for each.
function(wavesmith_families targets result)
    set(families 0)
    foreach (target IN LISTS targets)
        string(REGEX REPLACE ":.*" "" name "${target}")
        set(bit 1)
        set(found 0)
        foreach (known IN LISTS wavesmith_family_targets)
            string(REPLACE " " ";" known "${known}")
            if (name IN_LIST known)
                math(EXPR families "${families} | ${bit}")
                set(found 1)
            endif()
            math(EXPR bit "${bit} * 2")
        endforeach()
        if (NOT found)
            message(WARNING "wavesmith has no kernels for ${target}; stock runs there")
        endif()
    endforeach()
    set(${result} ${families} PARENT_SCOPE)
endfunction()

# `platform`: hip or cuda.
function(wavesmith_add_device_module platform)
    string(TOUPPER ${platform} language)
    wavesmith_kernel_instances(instances)
    file(GLOB kernel_sources CONFIGURE_DEPENDS ${WAVESMITH_BACKEND_DIR}/plan/*.cpp ${WAVESMITH_BACKEND_DIR}/platform/${platform}/*.cpp)
    list(FILTER kernel_sources EXCLUDE REGEX "/plan/host_")
    list(APPEND kernel_sources ${instances})
    set(glue_sources "")
    foreach (name environment hook_module ledger log op_match)
        list(APPEND glue_sources ${WAVESMITH_BACKEND_DIR}/ggml/${name}.cpp)
    endforeach()
    set_source_files_properties(${kernel_sources} PROPERTIES LANGUAGE ${language})

    add_library(ggml-custom-kernels-wavesmith OBJECT ${kernel_sources} ${glue_sources})
    set_target_properties(ggml-custom-kernels-wavesmith PROPERTIES
        CXX_STANDARD 17
        CXX_STANDARD_REQUIRED ON
        ${language}_STANDARD 17
        ${language}_STANDARD_REQUIRED ON
        POSITION_INDEPENDENT_CODE ON
        CXX_VISIBILITY_PRESET hidden
        ${language}_VISIBILITY_PRESET hidden
        VISIBILITY_INLINES_HIDDEN ON)
    target_include_directories(ggml-custom-kernels-wavesmith PRIVATE ${WAVESMITH_BACKEND_DIR} ${CMAKE_CURRENT_BINARY_DIR}/instances)
    target_compile_definitions(ggml-custom-kernels-wavesmith PRIVATE WAVESMITH_VERSION="${WAVESMITH_VERSION}" WAVESMITH_${language})
    # Contraction is off because a fused multiply-add would round differently from the arithmetic that the kernels document.
    if (platform STREQUAL "cuda")
        wavesmith_families("cuda" families)
        target_compile_options(ggml-custom-kernels-wavesmith PRIVATE
            $<$<COMPILE_LANGUAGE:CUDA>:-O3;--fmad=false;--expt-relaxed-constexpr;--diag-suppress=128,1675,20091>)
    else()
        wavesmith_families("${CMAKE_HIP_ARCHITECTURES}" families)
        target_compile_options(ggml-custom-kernels-wavesmith PRIVATE $<$<COMPILE_LANGUAGE:HIP>:-O3;-ffp-contract=off;-fno-math-errno>)
    endif()
    target_compile_definitions(ggml-custom-kernels-wavesmith PRIVATE WAVESMITH_FAMILIES=${families} WAVESMITH_ALL_ROWS=1)
endfunction()
