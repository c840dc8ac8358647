# The shared library of the Python package, libwavesmith-host.so, and what is installed with it.

function(wavesmith_add_host_library)
    wavesmith_add_kernels()
    file(GLOB sources CONFIGURE_DEPENDS ${WAVESMITH_BACKEND_DIR}/api/*.cpp)
    add_library(wavesmith-host SHARED ${sources} $<TARGET_OBJECTS:wavesmith-kernels>)
    wavesmith_host_settings(wavesmith-host)
    target_link_libraries(wavesmith-host PRIVATE Threads::Threads)
    target_link_options(wavesmith-host PRIVATE -Wl,--no-undefined)
endfunction()

# In a wheel: the library, and the sources that an installed wavesmith patches and builds llama.cpp with.
function(wavesmith_install_package)
    install(TARGETS wavesmith-host LIBRARY DESTINATION wavesmith/lib)
    get_filename_component(root ${WAVESMITH_BACKEND_DIR} DIRECTORY)
    install(FILES ${root}/LICENSE DESTINATION wavesmith/data)
    foreach (folder backend patches cmake)
        install(DIRECTORY ${root}/${folder} DESTINATION wavesmith/data OPTIONAL
            PATTERN "__pycache__" EXCLUDE
            PATTERN "*.pyc" EXCLUDE
            PATTERN "build" EXCLUDE
            PATTERN ".*" EXCLUDE)
    endforeach()
endfunction()
