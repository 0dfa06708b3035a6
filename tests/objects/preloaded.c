// cc: -O1 -fPIC -shared
// An allocator in place of that of the C library: what is taken back is not used again.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static char arena[64 << 20] __attribute__((aligned(4096)));
static size_t used;

static void *take(size_t alignment, size_t size) {
    // (Threads take turns by what is added at once.)
    size_t room = size + alignment + 32;
    size_t at = __atomic_fetch_add(&used, room, __ATOMIC_SEQ_CST);
    if (at + room > sizeof arena)
        return 0;
    uintptr_t block = ((uintptr_t)arena + at + 16 + alignment - 1) / alignment * alignment;
    ((size_t *)block)[-1] = size;
    return (void *)block;
}

void *malloc(size_t size) { return take(16, size); }
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t size) { return take(16, count * size); }
void *memalign(size_t alignment, size_t size) { return take(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return take(alignment, size); }

int posix_memalign(void **result, size_t alignment, size_t size) {
    *result = take(alignment, size);
    return *result ? 0 : 12;
}

void *realloc(void *old, size_t size) {
    void *block = malloc(size);
    if (!old || !block)
        return block;
    size_t before = ((size_t *)old)[-1];
    memcpy(block, old, before < size ? before : size);
    free(old);
    return block;
}
