include(${CMAKE_CURRENT_SOURCE_DIR}/ggml-custom-kernels.cmake)
