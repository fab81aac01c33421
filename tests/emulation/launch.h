// The program that launches a kernel once: the launch comes from stdin in the words of mod.rs, and all
// buffers go to stdout: EMULATION_MAIN(KERNEL(a), KERNEL(b)).
#pragma once
#include "cuda.h"

namespace emulation {

inline void read_bytes(void* to, size_t bytes) {
    if (bytes > 0 && fread(to, 1, bytes, stdin) != bytes) fail("the launch on stdin is cut short");
}
template <typename T>
T read_value() {
    T value;
    read_bytes(&value, sizeof value);
    return value;
}

// What a launch passes: a buffer, or the bytes of a number.
struct Argument {
    char* buffer = nullptr;
    std::vector<char> bytes;
};

template <typename T>
T decode(const Argument& argument, size_t i) {
    if constexpr (std::is_pointer<T>::value) {
        if (argument.buffer == nullptr) fail("argument " + std::to_string(i) + " is no buffer");
        return (T)argument.buffer;
    } else {
        if (argument.bytes.size() != sizeof(T)) {
            fail("argument " + std::to_string(i) + " has " + std::to_string(argument.bytes.size()) +
                 " bytes, not " + std::to_string(sizeof(T)));
        }
        T value;
        memcpy(&value, argument.bytes.data(), sizeof value);
        return value;
    }
}

struct Kernel {
    const char* name;
    std::function<std::function<void()>(const std::vector<Argument>&)> bind;
};

template <typename... A, size_t... I>
std::function<void()> bind_all(void (*f)(A...), const std::vector<Argument>& arguments,
                               std::index_sequence<I...>) {
    auto decoded = std::make_tuple(decode<A>(arguments[I], I)...);
    return [f, decoded] { std::apply(f, decoded); };
}

template <typename... A>
Kernel kernel(const char* name, void (*f)(A...)) {
    return {name, [f](const std::vector<Argument>& arguments) {
                if (arguments.size() != sizeof...(A)) {
                    fail(std::to_string(arguments.size()) + " arguments for " + std::to_string(sizeof...(A)));
                }
                return bind_all(f, arguments, std::index_sequence_for<A...>());
            }};
}

inline int run_launch(const std::vector<Kernel>& kernels) {
    std::string name(read_value<uint32_t>(), ' ');
    read_bytes(&name[0], name.size());
    auto blocks = read_value<uint32_t>(), threads = read_value<uint32_t>();
    auto shared_bytes = read_value<uint32_t>();
    auto seed = read_value<uint64_t>();
    std::vector<std::pair<char*, size_t>> buffers(read_value<uint32_t>());
    for (auto& buffer : buffers) {
        buffer.second = read_value<uint64_t>();
        // Exactly as many bytes as there are, so that the sanitizer knows where they end.
        if (posix_memalign((void**)&buffer.first, 256, buffer.second) != 0) fail("no memory for buffers");
        read_bytes(buffer.first, buffer.second);
    }
    std::vector<Argument> arguments(read_value<uint32_t>());
    for (auto& argument : arguments) {
        auto buffer = read_value<uint32_t>();
        auto bytes = read_value<uint32_t>();
        if (buffer != 0xffffffff) {
            if (buffer >= buffers.size()) fail("an argument names a buffer that is not there");
            argument.buffer = buffers[buffer].first;
        }
        argument.bytes.resize(bytes);
        read_bytes(argument.bytes.data(), bytes);
    }
    for (const Kernel& kernel : kernels) {
        if (name != kernel.name) continue;
        machine.body = kernel.bind(arguments);
        run_grid(blocks, threads, shared_bytes, seed);
        for (auto& buffer : buffers) fwrite(buffer.first, 1, buffer.second, stdout);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    fail("no kernel " + name);
}

}  // namespace emulation

#define KERNEL(name) emulation::kernel(#name, name)
#define EMULATION_MAIN(...) \
    int main() { return emulation::run_launch({__VA_ARGS__}); }
