// cc: -O1
// Has memory of an allocator, and blocks that it carves out of that by itself and tells of by requests. Prints, as `blocks`, the
// accesses by the line that has made the block. Between any two accesses it is elsewhere, so that each misses a cache of two lines.
#include "valgrind.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ARENA, ORDINARY, LIKE, POOL, CHANGED, SITES };

#define USES 50
#include "sites.h"

int main(void) {
    for (int round = 0; round < 20; round++) {
        line[ARENA] = __LINE__; char *arena = malloc(1 << 16);
        line[ORDINARY] = __LINE__; char *ordinary = malloc(1000);
        if (!arena || !ordinary)
            abort();
        line[LIKE] = __LINE__; VALGRIND_MALLOCLIKE_BLOCK(arena + 1024, 512, 0, 0);
        use(arena + 1024, 512, LIKE);
        use(arena, 1024, ARENA);
        VALGRIND_RESIZEINPLACE_BLOCK(arena + 1024, 512, 2048, 0);
        use(arena + 1024 + 512, 1536, LIKE);
        VALGRIND_RESIZEINPLACE_BLOCK(arena + 1024, 2048, 64, 0);
        use(arena + 1024, 64, LIKE);
        use(arena + 1024 + 64, 1984, ARENA);
        use(ordinary, 1000, ORDINARY);
        VALGRIND_CREATE_MEMPOOL(arena, 0, 0);
        line[POOL] = __LINE__; VALGRIND_MEMPOOL_ALLOC(arena, arena + 8192, 300); VALGRIND_MEMPOOL_ALLOC(arena, arena + 9000, 100);
        use(arena + 8192, 300, POOL);
        use(arena + 9000, 100, POOL);
        use(arena + 9100, 100, ARENA);
        VALGRIND_MEMPOOL_FREE(arena, arena + 8192);
        use(arena + 8192, 300, ARENA);
        line[CHANGED] = __LINE__; VALGRIND_MEMPOOL_CHANGE(arena, arena + 9000, arena + 16384, 200);
        use(arena + 9000, 100, ARENA);
        use(arena + 16384, 200, CHANGED);
        VALGRIND_MEMPOOL_TRIM(arena, arena + 16400, 100);
        use(arena + 16384, 16, ARENA);
        use(arena + 16400, 100, CHANGED);
        use(arena + 16500, 84, ARENA);
        VALGRIND_MOVE_MEMPOOL(arena, arena + 1);
        VALGRIND_DESTROY_MEMPOOL(arena);
        use(arena + 16400, 100, CHANGED);
        VALGRIND_DESTROY_MEMPOOL(arena + 1);
        use(arena + 16384, 200, ARENA);
        use(arena + 1024, 64, LIKE);
        VALGRIND_FREELIKE_BLOCK(arena + 1024, 0);
        use(arena + 1024, 64, ARENA);
        // What is carved out of it goes with it.
        VALGRIND_MALLOCLIKE_BLOCK(arena + 1024, 512, 0, 0);
        free(ordinary);
        free(arena);
    }
    for (int site = 0; site < SITES; site++)
        printf("%d %lu %lu\n", line[site], counts[site][0], counts[site][1]);
    return 0;
}
