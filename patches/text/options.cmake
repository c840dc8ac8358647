set   (GGML_CUSTOM_KERNELS "" CACHE STRING  "ggml: modules of custom kernels to build in; each needs <NAME>_PATH")
set   (GGML_CUSTOM_KERNELS_ORDER "" CACHE STRING
                                            "ggml: the same names in the order in which they are asked, if there is more than one")
option(GGML_CUSTOM_KERNELS_HOST             "ggml: build the modules' host backends next to a GPU backend" OFF)
