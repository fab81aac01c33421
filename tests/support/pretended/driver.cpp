// A pretended CUDA driver and NVRTC: as much of them as the queries of `millrace query --device
// gpu` use. Memory of a device is memory of the host; what is enqueued is done at once, one launch
// after the other, by the emulated kernels, which lie in a part of their own that changes between
// fibers (driver.rs). A stream that captures keeps launches for its graph; an event cannot be
// recorded on it. PRETENDED_GPUS says how many devices there are. PRETENDED_FAULT is what happens
// at a launch (from 0), of kernel or graph: trap@N, the device is lost to the process; full@N,
// memory is out for this launch.
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

extern "C" {
const void* pretended_kernel(const char* name);
void* pretended_bind(const void* kernel, void** arguments);
void pretended_run(void* bound, unsigned blocks, unsigned threads, unsigned shared_bytes, unsigned seed);
}

namespace {
typedef int Result;
typedef unsigned long long Address;
const Result OUT_OF_MEMORY = 2, NOT_FOUND = 500, LAUNCH_FAILED = 719, CAPTURES = 900;
const size_t MEMORY_BYTES = size_t(4) << 30;

struct Launch {
    void* bound;
    unsigned blocks, threads, shared_bytes;
};
struct Graph {
    std::vector<Launch> launches;
};
struct Stream {
    bool captures = false;
    Graph graph;
};

// The emulation is one machine. What is compiled with the kernels may change between fibers, and so
// is called by its holder.
std::mutex machine;
unsigned launches = 0;

void run(const Launch& launch) {
    std::lock_guard<std::mutex> held(machine);
    launches++;
    // Every other launch in a random order.
    pretended_run(launch.bound, launch.blocks, launch.threads, launch.shared_bytes, launches % 2 ? 0 : launches);
}
thread_local void* current = nullptr;

std::atomic<int> asked(0);
std::atomic<bool> lost(false);

// What becomes of the next launch.
Result fault() {
    const char* text = getenv("PRETENDED_FAULT");
    const char* at = text ? strchr(text, '@') : nullptr;
    if (at && asked++ == atoi(at + 1)) {
        if (!strncmp(text, "full", 4)) return OUT_OF_MEMORY;
        if (!strncmp(text, "trap", 4)) lost = true;
    }
    return lost ? LAUNCH_FAILED : 0;
}
}  // namespace

extern "C" {
Result cuInit(unsigned) { return 0; }
Result cuDriverGetVersion(int* version) { return *version = 13000, 0; }
Result cuGetErrorName(int, const char** name) { return *name = "PRETENDED", 0; }
Result cuGetErrorString(int, const char** text) { return *text = "pretended", 0; }

Result cuDeviceGetCount(int* count) {
    const char* asked = getenv("PRETENDED_GPUS");
    return *count = asked ? atoi(asked) : 1, 0;
}
Result cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
Result cuDeviceGetName(char* name, int room, int) { return strncpy(name, "pretended", room), 0; }
Result cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = MEMORY_BYTES, 0; }
Result cuDeviceGetAttribute(int* value, int attribute, int) {
    switch (attribute) {
        case 75: *value = 9; break;         // compute capability, before the dot
        case 76: *value = 0; break;         // and behind it
        case 16: *value = 2; break;         // multiprocessors
        case 97: *value = 16 << 10; break;  // shared memory of a block, for the smallest windows
        default: *value = 1;
    }
    return 0;
}
Result cuDevicePrimaryCtxRetain(void** context, int device) { return *context = (void*)(size_t)(1 + device), 0; }
Result cuDevicePrimaryCtxRelease_v2(int) { return 0; }
Result cuCtxSetCurrent(void* context) { return current = context, 0; }
Result cuCtxGetCurrent(void** context) { return *context = current, 0; }
Result cuCtxSynchronize() { return 0; }
Result cuMemGetInfo_v2(size_t* free, size_t* all) { return *free = *all = MEMORY_BYTES, 0; }

Result cuMemAlloc_v2(Address* address, size_t bytes) {
    void* memory = nullptr;
    if (posix_memalign(&memory, 256, bytes) != 0) return OUT_OF_MEMORY;
    // Rubbish where it is likely to be read.
    memset(memory, 0xa5, std::min(bytes, size_t(1) << 20));
    return *address = (Address)memory, 0;
}
Result cuMemFree_v2(Address address) { return free((void*)address), 0; }
Result cuMemHostAlloc(void** memory, size_t bytes, unsigned) { return posix_memalign(memory, 256, bytes) ? OUT_OF_MEMORY : 0; }
Result cuMemFreeHost(void* memory) { return free(memory), 0; }
Result cuMemcpyHtoD_v2(Address to, const void* from, size_t bytes) { return memcpy((void*)to, from, bytes), 0; }
Result cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, void*) { return memcpy((void*)to, from, bytes), 0; }
Result cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void*) { return memcpy(to, (void*)from, bytes), 0; }

Result cuStreamCreate(void** stream, unsigned) { return *stream = new Stream, 0; }
Result cuStreamDestroy_v2(void* stream) { return delete (Stream*)stream, 0; }
Result cuStreamSynchronize(void*) { return 0; }
Result cuStreamBeginCapture_v2(void* stream, int) { return ((Stream*)stream)->captures = true, 0; }
Result cuStreamEndCapture(void* of, void** graph) {
    Stream* stream = (Stream*)of;
    stream->captures = false;
    *graph = new Graph(std::move(stream->graph));
    stream->graph = Graph();
    return 0;
}
Result cuGraphInstantiateWithFlags(void** instance, void* graph, unsigned long long) { return *instance = graph, 0; }
Result cuGraphLaunch(void* graph, void*) {
    if (Result failed = fault()) return failed;
    for (const Launch& launch : ((Graph*)graph)->launches) run(launch);
    return 0;
}
Result cuGraphDestroy(void* graph) { return delete (Graph*)graph, 0; }
Result cuGraphExecDestroy(void*) { return 0; }

Result cuEventCreate(void** event, unsigned) { return *event = malloc(1), 0; }
Result cuEventDestroy_v2(void* event) { return free(event), 0; }
Result cuEventRecord(void*, void* stream) { return stream && ((Stream*)stream)->captures ? CAPTURES : 0; }
Result cuEventQuery(void*) { return lost ? LAUNCH_FAILED : 0; }
Result cuEventSynchronize(void*) { return 0; }
Result cuEventElapsedTime(float* ms, void*, void*) { return *ms = 1, 0; }
Result cuEventElapsedTime_v2(float* ms, void*, void*) { return *ms = 1, 0; }

Result cuModuleLoadData(void** module, const void*) { return *module = &machine, 0; }
Result cuModuleUnload(void*) { return 0; }
Result cuModuleGetFunction(void** function, void*, const char* name) {
    std::lock_guard<std::mutex> held(machine);
    *function = (void*)pretended_kernel(name);
    return *function ? 0 : NOT_FOUND;
}
Result cuFuncSetAttribute(void*, int, int) { return 0; }
Result cuFuncGetAttribute(int* value, int, void*) { return *value = 1024, 0; }
Result cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void*, int, size_t, unsigned) { return *blocks = 2, 0; }
Result cuLaunchKernel(void* kernel, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                      unsigned shared_bytes, void* on, void** arguments, void**) {
    Stream* stream = (Stream*)on;
    if (!stream->captures)
        if (Result failed = fault()) return failed;
    std::unique_lock<std::mutex> held(machine);
    Launch launch = {pretended_bind(kernel, arguments), blocks, threads, shared_bytes};
    held.unlock();
    if (stream->captures) stream->graph.launches.push_back(launch);
    else run(launch);
    return 0;
}

Result nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
Result nvrtcGetNumSupportedArchs(int* count) { return *count = 1, 0; }
Result nvrtcGetSupportedArchs(int* architectures) { return *architectures = 90, 0; }
Result nvrtcCreateProgram(void** program, ...) { return *program = &machine, 0; }
Result nvrtcCompileProgram(void*, ...) { return 0; }
Result nvrtcGetCUBINSize(void*, size_t* bytes) { return *bytes = 4, 0; }
Result nvrtcGetCUBIN(void*, char* cubin) { return memcpy(cubin, "none", 4), 0; }
Result nvrtcDestroyProgram(void**) { return 0; }
Result nvrtcGetProgramLogSize(void*, size_t* bytes) { return *bytes = 1, 0; }
Result nvrtcGetProgramLog(void*, char* log) { return *log = 0, 0; }
const char* nvrtcGetErrorString(int) { return "pretended"; }
}
