/* Requests to the tool cachegrind, of grind or of Valgrind: see valgrind.h.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef GRIND_CACHEGRIND_H
#define GRIND_CACHEGRIND_H

#include "valgrind.h"

typedef enum {
    VG_USERREQ__CG_START_INSTRUMENTATION = VG_USERREQ_TOOL_BASE('C', 'G'),
    VG_USERREQ__CG_STOP_INSTRUMENTATION
} Vg_CachegrindClientRequest;

/* Count from here on; use it with --instr-at-start=no. */
#define CACHEGRIND_START_INSTRUMENTATION                                                                                  \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__CG_START_INSTRUMENTATION, 0, 0, 0, 0, 0)

/* Count no longer. */
#define CACHEGRIND_STOP_INSTRUMENTATION                                                                                   \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__CG_STOP_INSTRUMENTATION, 0, 0, 0, 0, 0)

/* Contexts of the statistics: what is executed between a push and its pop is counted apart, too, as one of as many contexts
 * as the program likes. They are numbers of its own choosing; 0 is where every program starts. Each thread has its own
 * stack; a thread that has pushed nothing is in the context of the thread that created it. Only grind knows these requests;
 * under Valgrind, and natively, nothing happens. */
typedef enum {
    VG_USERREQ__GR_PUSH_CONTEXT = VG_USERREQ_TOOL_BASE('G', 'R'),
    VG_USERREQ__GR_POP_CONTEXT,
    VG_USERREQ__GR_NAME_CONTEXT
} Vg_GrindClientRequest;

/* What follows belongs to context n. */
#define CG_PUSH_CONTEXT(n) VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__GR_PUSH_CONTEXT, n, 0, 0, 0, 0)

/* What follows belongs to the context before the last push. A pop too many is ignored; the first one is reported. */
#define CG_POP_CONTEXT() VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__GR_POP_CONTEXT, 0, 0, 0, 0, 0)

/* The number of the context with this name, the same every time; none that the program could choose. 0 natively. */
#define CG_CONTEXT_NAMED(name) VALGRIND_DO_CLIENT_REQUEST_EXPR(0, VG_USERREQ__GR_NAME_CONTEXT, name, 0, 0, 0, 0)

/* What follows belongs to the context with this name. If it is a string literal, its number is only asked for once. */
#define CG_PUSH_CONTEXT_NAMED(name)                                                                                       \
    do {                                                                                                                  \
        static unsigned long grind_known_;                                                                                \
        unsigned long grind_number_ = __atomic_load_n(&grind_known_, __ATOMIC_RELAXED);                                   \
        if (!__builtin_constant_p(name) || !grind_number_) {                                                              \
            grind_number_ = CG_CONTEXT_NAMED(name);                                                                       \
            __atomic_store_n(&grind_known_, grind_number_, __ATOMIC_RELAXED);                                             \
        }                                                                                                                 \
        CG_PUSH_CONTEXT(grind_number_);                                                                                   \
    } while (0)

#endif
