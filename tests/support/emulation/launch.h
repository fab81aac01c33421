// The program that serves launches: EMULATION_MAIN(KERNEL(a), KERNEL(b)). It reads requests from
// stdin until that ends, each a letter and what mod.rs puts behind it, and answers on stdout:
//   A  makes a buffer with a number, full of rubbish        no answer
//   F  frees one                                            no answer
//   W  writes bytes to a place in one                       no answer
//   R  reads bytes from a place in one                      the bytes
//   L  runs a kernel                                        the letter D
// A fault ends the program; stderr says what it was.
#pragma once
#include <signal.h>

#include <map>

#include "cuda.h"

namespace emulation {

// A launch that takes longer waits for ever.
const unsigned MOST_SECONDS = 600;

inline void read_bytes(void* to, size_t bytes) {
    if (bytes > 0 && fread(to, 1, bytes, stdin) != bytes) fail("a request on stdin is cut short");
}
template <typename T>
T read_value() {
    T value;
    read_bytes(&value, sizeof value);
    return value;
}

struct Buffer {
    char* bytes = nullptr;
    size_t count = 0;
};
inline std::map<uint32_t, Buffer> buffers;

inline Buffer& buffer_of(uint32_t number) {
    auto found = buffers.find(number);
    if (found == buffers.end()) fail("there is no buffer " + std::to_string(number));
    return found->second;
}

inline char* part_of(uint32_t number, uint64_t at, uint64_t bytes) {
    const Buffer& buffer = buffer_of(number);
    if (at > buffer.count || bytes > buffer.count - at) fail("a part is not within its buffer");
    return buffer.bytes + at;
}

// What a launch passes: a place in a buffer, or the bytes of a number.
struct Argument {
    char* place = nullptr;
    std::vector<char> bytes;
};

template <typename T>
T decode(const Argument& argument, size_t i) {
    if constexpr (std::is_pointer<T>::value) {
        if (argument.place == nullptr) fail("argument " + std::to_string(i) + " is no buffer");
        return (T)argument.place;
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

inline void run_launch(const std::vector<Kernel>& kernels) {
    std::string name(read_value<uint32_t>(), ' ');
    read_bytes(&name[0], name.size());
    auto blocks = read_value<uint32_t>(), threads = read_value<uint32_t>();
    auto shared_bytes = read_value<uint32_t>();
    auto seed = read_value<uint64_t>();
    std::vector<Argument> arguments(read_value<uint32_t>());
    for (auto& argument : arguments) {
        auto buffer = read_value<uint32_t>();
        auto bytes = read_value<uint32_t>();
        if (buffer != 0xffffffff) {
            auto at = read_value<uint64_t>();
            argument.place = part_of(buffer, at, 0);
        }
        argument.bytes.resize(bytes);
        read_bytes(argument.bytes.data(), bytes);
    }
    for (const Kernel& kernel : kernels) {
        if (name != kernel.name) continue;
        machine.body = kernel.bind(arguments);
        alarm(MOST_SECONDS);
        run_grid(blocks, threads, shared_bytes, seed);
        alarm(0);
        fputc('D', stdout);
        return;
    }
    fail("no kernel " + name);
}

inline int serve(const std::vector<Kernel>& kernels) {
    signal(SIGALRM, [](int) {
        const char said[] = "emulation: the launch takes too long: does a thread wait for one that comes later?\n";
        (void)!write(2, said, sizeof said - 1);
        _exit(3);
    });
    for (;;) {
        int request = fgetc(stdin);
        if (request == EOF) return 0;
        if (request == 'L') {
            run_launch(kernels);
        } else if (request == 'A') {
            auto number = read_value<uint32_t>();
            Buffer& buffer = buffers[number];
            buffer.count = read_value<uint64_t>();
            // Exactly as many bytes as there are, so that the sanitizer knows where they end.
            if (posix_memalign((void**)&buffer.bytes, 256, buffer.count) != 0) fail("no memory for buffers");
            memset(buffer.bytes, 0xa5, buffer.count);
        } else if (request == 'F') {
            auto number = read_value<uint32_t>();
            free(buffer_of(number).bytes);
            buffers.erase(number);
        } else if (request == 'W' || request == 'R') {
            auto number = read_value<uint32_t>();
            auto at = read_value<uint64_t>(), bytes = read_value<uint64_t>();
            char* part = part_of(number, at, bytes);
            if (request == 'W') {
                read_bytes(part, bytes);
            } else {
                fwrite(part, 1, bytes, stdout);
            }
        } else {
            fail("a request that nobody knows");
        }
        // Requests without an answer may follow at once; only answers are waited for.
        if ((request == 'L' || request == 'R') && fflush(stdout) != 0) return 1;
    }
}

}  // namespace emulation

#define KERNEL(name) emulation::kernel(#name, name)
#define EMULATION_MAIN(...) \
    int main() { return emulation::serve({__VA_ARGS__}); }
