/* Requests to the tool callgrind, of Valgrind or of a grind that has it; every other tool ignores them: see valgrind.h.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef GRIND_CALLGRIND_H
#define GRIND_CALLGRIND_H

#include "valgrind.h"

typedef enum {
    VG_USERREQ__DUMP_STATS = VG_USERREQ_TOOL_BASE('C', 'T'),
    VG_USERREQ__ZERO_STATS,
    VG_USERREQ__TOGGLE_COLLECT,
    VG_USERREQ__DUMP_STATS_AT,
    VG_USERREQ__START_INSTRUMENTATION,
    VG_USERREQ__STOP_INSTRUMENTATION,
    VG_USERREQ__ADD_OBJ_SKIP,
    VG_USERREQ__ADD_DESC
} Vg_CallgrindClientRequest;

/* Write the costs so far as a part of the profile, and start again from zero; the second form shows a reason. */
#define CALLGRIND_DUMP_STATS VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__DUMP_STATS, 0, 0, 0, 0, 0)
#define CALLGRIND_DUMP_STATS_AT(reason) VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__DUMP_STATS_AT, reason, 0, 0, 0, 0)

/* Forget the costs so far. */
#define CALLGRIND_ZERO_STATS VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__ZERO_STATS, 0, 0, 0, 0, 0)

/* Collect costs no longer, or again. */
#define CALLGRIND_TOGGLE_COLLECT VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__TOGGLE_COLLECT, 0, 0, 0, 0, 0)

/* Instrument from here on, or no longer. */
#define CALLGRIND_START_INSTRUMENTATION VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__START_INSTRUMENTATION, 0, 0, 0, 0, 0)
#define CALLGRIND_STOP_INSTRUMENTATION VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__STOP_INSTRUMENTATION, 0, 0, 0, 0, 0)

/* What functions of the object at that path (absolute, without symbolic links) cost is their callers' from here on; the next
 * part is described by that text, among others. grind and CodSpeed's fork of Valgrind know these. */
#define CALLGRIND_ADD_OBJ_SKIP(path) VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__ADD_OBJ_SKIP, path, 0, 0, 0, 0)
#define CALLGRIND_ADD_DESC(text) VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__ADD_DESC, text, 0, 0, 0, 0)

#endif
