# Debian's packages as targets. Everything but glibc is linked statically (docs/adr/0002).
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(GTest REQUIRED)

# fmt and spdlog: headers only from Debian, compiled once into `base` (their .so files drag
# libstdc++ in).
add_library(ndp_fmt INTERFACE)
target_include_directories(ndp_fmt SYSTEM INTERFACE /usr/include)

add_library(ndp_yaml INTERFACE)
find_library(NDP_YAML_A NAMES libyaml-cpp.a REQUIRED)
target_link_libraries(ndp_yaml INTERFACE ${NDP_YAML_A})

# libevent's core (and its http for the web room) as archives.
find_library(NDP_EVENT_CORE_A NAMES libevent_core.a REQUIRED)
find_library(NDP_EVENT_EXTRA_A NAMES libevent_extra.a REQUIRED)
add_library(ndp_event INTERFACE)
target_link_libraries(ndp_event INTERFACE ${NDP_EVENT_CORE_A})
add_library(ndp_event_http INTERFACE)
target_link_libraries(ndp_event_http INTERFACE ${NDP_EVENT_EXTRA_A} ${NDP_EVENT_CORE_A})

# gRPC's CMake package knows shared objects only; its archives are linked by name. The list is
# what `pkg-config --static` gives less the system's own libraries, plus what Debian's .pc files
# leave out.
pkg_check_modules(NDP_GRPC REQUIRED grpc++_unsecure protobuf)
execute_process(
  COMMAND ${PKG_CONFIG_EXECUTABLE} --static --libs-only-l grpc++_unsecure protobuf
  OUTPUT_VARIABLE grpc_libs OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REPLACE " " ";" grpc_libs "${grpc_libs}")
list(FILTER grpc_libs EXCLUDE REGEX "^-l(pthread|dl|m|rt|c|systemd)$")
add_library(ndp_grpc INTERFACE)
target_link_libraries(ndp_grpc INTERFACE
  -Wl,-Bstatic ${grpc_libs} -lcares -laddress_sorting -lupb -lre2 -lz -Wl,-Bdynamic
  Threads::Threads ${CMAKE_DL_LIBS} m rt)
find_program(NDP_PROTOC protoc REQUIRED)
find_program(NDP_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
