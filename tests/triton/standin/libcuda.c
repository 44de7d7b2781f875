/* A stand-in for the CUDA driver library: one sm_90 device that runs nothing and records what it is told.

   The tests read `record` and set `parameter_count` and `failing`, the name of a function that is to return an error. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int launches, device, launched_on, loads;
    unsigned grid[3], block[3], shared;
    uint64_t stream, parameters[32];
    int largest_shared;
} Record;

Record record = {.device = -1};
int parameter_count = 0;
int failing = 0;

#define CALL(name, ...) int name(__VA_ARGS__)
#define OK return failing ? 2 : 0

CALL(cuInit, unsigned flags) { return 0; }
CALL(cuDriverGetVersion, int *version) { *version = 13000; return 0; }
CALL(cuDeviceGet, int *device, int ordinal) { *device = ordinal; return 0; }
CALL(cuDeviceGetCount, int *count) { *count = 2; return 0; }
CALL(cuDevicePrimaryCtxRetain, uint64_t *context, int device) { *context = 0x1000 + device; return 0; }
CALL(cuCtxSetCurrent, uint64_t context) { record.device = (int)(context - 0x1000); return 0; }
CALL(cuCtxGetCurrent, uint64_t *context) { *context = record.device < 0 ? 0 : 0x1000 + record.device; return 0; }
CALL(cuCtxGetDevice, int *device) { *device = record.device < 0 ? 0 : record.device; return 0; }
CALL(cuCtxGetLimit, size_t *value, int limit) { *value = 1 << 20; return 0; }
CALL(cuCtxSetLimit, int limit, size_t value) { return 0; }
CALL(cuDeviceGetAttribute, int *value, int attribute, int device) {
    switch (attribute) {
        case 75: *value = 9; break;              /* compute capability 9.0 */
        case 76: *value = 0; break;
        case 8: *value = 49152; break;           /* shared memory of a block */
        case 97: *value = 232448; break;         /* the same, opted in */
        case 81: *value = 233472; break;         /* shared memory of a multiprocessor */
        case 16: *value = 132; break;            /* multiprocessors */
        case 10: *value = 32; break;             /* warp size */
        case 12: case 82: *value = 65536; break; /* registers */
        case 39: *value = 2048; break;           /* threads of a multiprocessor */
        default: *value = 1; break;
    }
    return 0;
}
CALL(cuModuleLoadData, uint64_t *module, const void *image) {
    *module = 0x2000;
    record.loads++;
    OK;
}
CALL(cuModuleUnload, uint64_t module) { return 0; }
CALL(cuModuleGetFunction, uint64_t *function, uint64_t module, const char *name) { *function = 0x3000; return 0; }
CALL(cuFuncSetAttribute, uint64_t function, int attribute, int value) {
    if (attribute == 8) record.largest_shared = value;
    return 0;
}
CALL(cuFuncGetAttribute, int *value, int attribute, uint64_t function) { *value = attribute == 0 ? 1024 : 0; return 0; }
CALL(cuFuncSetCacheConfig, uint64_t function, int config) { return 0; }
CALL(cuStreamIsCapturing, uint64_t stream, int *status) { *status = 0; return 0; }
CALL(cuStreamSynchronize, uint64_t stream) { return 0; }
CALL(cuPointerGetAttribute, void *data, int attribute, uint64_t pointer) { *(uint64_t *)data = pointer; return 0; }
CALL(cuPointerGetAttributes, unsigned count, int *attributes, void **data, uint64_t pointer) {
    for (unsigned i = 0; i < count; i++) *(uint64_t *)data[i] = pointer;
    return 0;
}
CALL(cuGetErrorString, int code, const char **text) { *text = code == 2 ? "out of memory" : "some error"; return 0; }
CALL(cuOccupancyMaxActiveClusters, int *count, uint64_t function, void *config) { *count = 1; return 0; }
CALL(cuTensorMapEncodeTiled, void *map) { return 0; }
CALL(cuTensorMapEncodeIm2col, void *map) { return 0; }

static void note(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                 uint64_t stream, void **parameters) {
    unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    record.launches++;
    record.launched_on = record.device;
    memcpy(record.grid, grid, sizeof grid);
    memcpy(record.block, block, sizeof block);
    record.shared = shared;
    record.stream = stream;
    for (int i = 0; i < parameter_count; i++) memcpy(&record.parameters[i], parameters[i], 8);
}
CALL(cuLaunchKernel, uint64_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
     unsigned shared, uint64_t stream, void **parameters, void **extra) {
    note(gx, gy, gz, bx, by, bz, shared, stream, parameters);
    OK;
}
typedef struct { unsigned grid[3], block[3], shared; uint64_t stream; void *attributes; unsigned count; } Config;
CALL(cuLaunchKernelEx, const Config *c, uint64_t function, void **parameters, void **extra) {
    note(c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared, c->stream, parameters);
    OK;
}
