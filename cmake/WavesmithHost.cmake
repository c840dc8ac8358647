# What every target of the host build has in common: language level, flags, the sources of the kernels.

option(WAVESMITH_NATIVE "Compile the host kernels for the CPU of this machine (-march=native)" ON)

option(WAVESMITH_ALL_ROWS "Compile every row of plan/mmq_plans.inc, also those that are for GPUs alone" OFF)

# Compiler settings of a host target. Contraction is off because a fused multiply-add would round differently from the
# arithmetic that the kernels document.
function(wavesmith_host_settings target)
    set_target_properties(${target} PROPERTIES
        CXX_STANDARD 17
        CXX_STANDARD_REQUIRED ON
        CXX_EXTENSIONS OFF
        POSITION_INDEPENDENT_CODE ON
        CXX_VISIBILITY_PRESET hidden
        VISIBILITY_INLINES_HIDDEN ON)
    # -O3 in every configuration: the threads of a GPU block are simulated, which an unoptimised build makes unusable.
    target_compile_options(${target} PRIVATE -O3 -ffp-contract=off -fno-math-errno)
    if (WAVESMITH_NATIVE)
        target_compile_options(${target} PRIVATE -march=native)
    endif()
    target_compile_definitions(${target} PRIVATE WAVESMITH_VERSION="${WAVESMITH_VERSION}")
    target_include_directories(${target} PRIVATE ${WAVESMITH_BACKEND_DIR})
endfunction()

# Writes one source file per GGUF type, mmq_<type>.cpp, from plan/mmq_instance.cpp.in, and puts their paths into `result`;
# beside them mmq_types.inc, a line MMQ_TYPE(<type>) for each.
# A type is a header directly in quants/, named like its struct in lower case; what types share lies in quants/support/.
function(wavesmith_kernel_instances result)
    file(GLOB headers CONFIGURE_DEPENDS ${WAVESMITH_BACKEND_DIR}/quants/*.h)
    set(sources "")
    set(types "")
    foreach (header IN LISTS headers)
        get_filename_component(WAVESMITH_QUANT ${header} NAME_WE)
        string(TOUPPER ${WAVESMITH_QUANT} WAVESMITH_QUANT_STRUCT)
        set(source ${CMAKE_CURRENT_BINARY_DIR}/instances/mmq_${WAVESMITH_QUANT}.cpp)
        configure_file(${WAVESMITH_BACKEND_DIR}/plan/mmq_instance.cpp.in ${source} @ONLY)
        list(APPEND sources ${source})
        string(APPEND types "MMQ_TYPE(${WAVESMITH_QUANT})\n")
    endforeach()
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/instances/mmq_types.inc CONTENT "${types}" @ONLY)
    set(${result} "${sources}" PARENT_SCOPE)
endfunction()

# The object library `wavesmith-kernels`: platform, plan and kernel instances, without any interface around them.
function(wavesmith_add_kernels)
    find_package(Threads REQUIRED)
    wavesmith_kernel_instances(instances)
    file(GLOB sources CONFIGURE_DEPENDS ${WAVESMITH_BACKEND_DIR}/platform/host/*.cpp ${WAVESMITH_BACKEND_DIR}/plan/*.cpp)
    add_library(wavesmith-kernels OBJECT ${sources} ${instances})
    wavesmith_host_settings(wavesmith-kernels)
    target_include_directories(wavesmith-kernels PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/instances)
    target_compile_definitions(wavesmith-kernels PRIVATE WAVESMITH_ALL_ROWS=$<BOOL:${WAVESMITH_ALL_ROWS}>)
    target_link_libraries(wavesmith-kernels PRIVATE Threads::Threads)
endfunction()
