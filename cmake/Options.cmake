# Compiler options of the project's own code: link `ndp_options` (every room does).
add_library(ndp_options INTERFACE)
target_compile_options(ndp_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual
  -Woverloaded-virtual -Wimplicit-fallthrough -Wno-missing-field-initializers
  -ffunction-sections -fdata-sections -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)

option(NDP_WERROR "Treat warnings as errors" OFF)
if(NDP_WERROR)
  target_compile_options(ndp_options INTERFACE -Werror)
endif()

# "address,undefined", "thread" or empty. The simulated libnvidia-ml never takes part: Python and
# Go could not load it.
set(NDP_SANITIZE "" CACHE STRING "Sanitizers, comma separated")
option(NDP_SANITIZE_POINTERS "UBSan's pointer checks too, which ASan nearly always makes needless" OFF)
if(NDP_SANITIZE)
  target_compile_options(ndp_options INTERFACE -fsanitize=${NDP_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(ndp_options INTERFACE -fsanitize=${NDP_SANITIZE})
  if(NDP_SANITIZE MATCHES undefined)
    # A check at every pointer and reference doubles the code to generate, and ASan stops at the same
    # faults: a null or dangling object. Measured: 40 % of the time of a build from nothing.
    target_compile_options(ndp_options INTERFACE -fno-sanitize-recover=undefined)
    if(NDP_SANITIZE MATCHES address AND NOT NDP_SANITIZE_POINTERS)
      target_compile_options(ndp_options INTERFACE -fno-sanitize=null,alignment,object-size,vptr)
    endif()
  endif()
endif()

option(NDP_HARDEN "Hardening options of the release build" OFF)
if(NDP_HARDEN)
  target_compile_options(ndp_options INTERFACE
    -fstack-protector-strong -D_GLIBCXX_ASSERTIONS $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  target_link_options(ndp_options INTERFACE -Wl,-z,relro,-z,now)
  # 24 bytes become a few bits for each of 12,000 relocations: read, and resident, at every start.
  target_link_options(ndp_options INTERFACE -Wl,-z,pack-relative-relocs)
endif()
target_link_options(ndp_options INTERFACE -Wl,--gc-sections)

find_program(CCACHE ccache)
if(CCACHE)
  # With precompiled headers ccache needs to be told what not to worry about.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()
