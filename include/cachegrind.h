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

#endif
