/* Requests from a program to the profiler that runs it: grind, or Valgrind itself.
 *
 * The macros have Valgrind's names and the requests its numbers and encoding, so that code written for Valgrind's headers
 * compiles with these. Outside a profiler a request does nothing and answers with its default. With NVALGRIND defined, or
 * on anything but x86-64 Linux with a GNU-compatible compiler, requests are not compiled in at all.
 *
 * Not provided: the wrapping and replacing of functions (VALGRIND_GET_ORIG_FN, CALL_FN_*, I_WRAP_*).
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef GRIND_VALGRIND_H
#define GRIND_VALGRIND_H

/* Valgrind's own header and this one exclude each other: whichever comes first is used. */
#ifndef __VALGRIND_H
#define __VALGRIND_H

#include <stdarg.h>

/* The version whose requests these are. */
#define __VALGRIND_MAJOR__ 3
#define __VALGRIND_MINOR__ 28

#if !(defined(__x86_64__) && !defined(__ILP32__) && defined(__linux__) && defined(__GNUC__)) && !defined(NVALGRIND)
#define NVALGRIND 1
#endif

/* The first number of a tool's own requests. */
#define VG_USERREQ_TOOL_BASE(a, b) ((unsigned int)(((a) & 0xff) << 24 | ((b) & 0xff) << 16))
#define VG_IS_TOOL_USERREQ(a, b, v) (VG_USERREQ_TOOL_BASE(a, b) == ((v) & 0xffff0000))

typedef enum {
    VG_USERREQ__RUNNING_ON_VALGRIND = 0x1001,
    VG_USERREQ__DISCARD_TRANSLATIONS = 0x1002,
    VG_USERREQ__REPLACES_MALLOC = 0x1003,
    VG_USERREQ__GET_TOOLNAME = 0x1004,
    VG_USERREQ__CLIENT_CALL0 = 0x1101,
    VG_USERREQ__CLIENT_CALL1 = 0x1102,
    VG_USERREQ__CLIENT_CALL2 = 0x1103,
    VG_USERREQ__CLIENT_CALL3 = 0x1104,
    VG_USERREQ__COUNT_ERRORS = 0x1201,
    VG_USERREQ__GDB_MONITOR_COMMAND = 0x1202,
    VG_USERREQ__CLO_CHANGE = 0x1203,
    VG_USERREQ__MALLOCLIKE_BLOCK = 0x1301,
    VG_USERREQ__FREELIKE_BLOCK = 0x1302,
    VG_USERREQ__CREATE_MEMPOOL = 0x1303,
    VG_USERREQ__DESTROY_MEMPOOL = 0x1304,
    VG_USERREQ__MEMPOOL_ALLOC = 0x1305,
    VG_USERREQ__MEMPOOL_FREE = 0x1306,
    VG_USERREQ__MEMPOOL_TRIM = 0x1307,
    VG_USERREQ__MOVE_MEMPOOL = 0x1308,
    VG_USERREQ__MEMPOOL_CHANGE = 0x1309,
    VG_USERREQ__MEMPOOL_EXISTS = 0x130a,
    VG_USERREQ__RESIZEINPLACE_BLOCK = 0x130b,
    VG_USERREQ__PRINTF = 0x1401,
    VG_USERREQ__PRINTF_BACKTRACE = 0x1402,
    VG_USERREQ__PRINTF_VALIST_BY_REF = 0x1403,
    VG_USERREQ__PRINTF_BACKTRACE_VALIST_BY_REF = 0x1404,
    VG_USERREQ__STACK_REGISTER = 0x1501,
    VG_USERREQ__STACK_DEREGISTER = 0x1502,
    VG_USERREQ__STACK_CHANGE = 0x1503,
    VG_USERREQ__LOAD_PDB_DEBUGINFO = 0x1601,
    VG_USERREQ__MAP_IP_TO_SRCLOC = 0x1701,
    VG_USERREQ__CHANGE_ERR_DISABLEMENT = 0x1801,
    VG_USERREQ__VEX_INIT_FOR_IRI = 0x1901,
    VG_USERREQ__INNER_THREADS = 0x1902
} Vg_ClientRequest;

/* Any request, as an expression: the answer, or grind_default. The arguments are integers or pointers. */
#ifdef NVALGRIND
#define VALGRIND_DO_CLIENT_REQUEST_EXPR(grind_default, grind_code, grind_a1, grind_a2, grind_a3, grind_a4, grind_a5) \
    (grind_default)
#else
/* RDI is rotated by 128 bits and RBX exchanged with itself: only a profiler sees more in it. No function, so that a request has
   the line of who makes it. */
#define VALGRIND_DO_CLIENT_REQUEST_EXPR(grind_default, grind_code, grind_a1, grind_a2, grind_a3, grind_a4, grind_a5)      \
    __extension__({                                                                                                       \
        volatile unsigned long grind_block_[6];                                                                           \
        unsigned long grind_answer_ = (unsigned long)(grind_default);                                                     \
        grind_block_[0] = (unsigned long)(grind_code);                                                                    \
        grind_block_[1] = (unsigned long)(grind_a1);                                                                      \
        grind_block_[2] = (unsigned long)(grind_a2);                                                                      \
        grind_block_[3] = (unsigned long)(grind_a3);                                                                      \
        grind_block_[4] = (unsigned long)(grind_a4);                                                                      \
        grind_block_[5] = (unsigned long)(grind_a5);                                                                      \
        __asm__ __volatile__("rolq $3, %%rdi\n\t"                                                                         \
                             "rolq $13, %%rdi\n\t"                                                                        \
                             "rolq $61, %%rdi\n\t"                                                                        \
                             "rolq $51, %%rdi\n\t"                                                                        \
                             "xchgq %%rbx, %%rbx"                                                                         \
                             : "+d"(grind_answer_)                                                                        \
                             : "a"(&grind_block_[0])                                                                      \
                             : "cc", "memory");                                                                           \
        grind_answer_;                                                                                                    \
    })
#endif

/* The same as a statement. */
#define VALGRIND_DO_CLIENT_REQUEST_STMT(grind_code, grind_a1, grind_a2, grind_a3, grind_a4, grind_a5)                     \
    do {                                                                                                                  \
        (void)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, grind_code, grind_a1, grind_a2, grind_a3, grind_a4, grind_a5);           \
    } while (0)

/* The same, storing the answer. */
#define VALGRIND_DO_CLIENT_REQUEST(grind_result, grind_default, grind_code, grind_a1, grind_a2, grind_a3, grind_a4,       \
                                   grind_a5)                                                                              \
    do {                                                                                                                  \
        (grind_result) = VALGRIND_DO_CLIENT_REQUEST_EXPR(grind_default, grind_code, grind_a1, grind_a2, grind_a3,         \
                                                         grind_a4, grind_a5);                                             \
    } while (0)

/* How many profilers run the program, one inside the other; 0 natively. */
#define RUNNING_ON_VALGRIND ((unsigned)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, VG_USERREQ__RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0))

/* The code in these bytes has been changed. */
#define VALGRIND_DISCARD_TRANSLATIONS(addr, len)                                                                          \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__DISCARD_TRANSLATIONS, addr, len, 0, 0, 0)

/* Whether the tool replaces malloc. */
#define VALGRIND_REPLACES_MALLOC ((unsigned)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, VG_USERREQ__REPLACES_MALLOC, 0, 0, 0, 0, 0))

/* The tool's name into a buffer; its length with the final NUL. */
#define VALGRIND_GET_TOOLNAME(buf, len)                                                                                   \
    ((unsigned)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, VG_USERREQ__GET_TOOLNAME, buf, len, 0, 0, 0))

/* Calls a function with the thread's number and up to three arguments, outside the profile. */
#define VALGRIND_NON_SIMD_CALL0(fn) VALGRIND_DO_CLIENT_REQUEST_EXPR(0, VG_USERREQ__CLIENT_CALL0, fn, 0, 0, 0, 0)
#define VALGRIND_NON_SIMD_CALL1(fn, a1) VALGRIND_DO_CLIENT_REQUEST_EXPR(0, VG_USERREQ__CLIENT_CALL1, fn, a1, 0, 0, 0)
#define VALGRIND_NON_SIMD_CALL2(fn, a1, a2)                                                                               \
    VALGRIND_DO_CLIENT_REQUEST_EXPR(0, VG_USERREQ__CLIENT_CALL2, fn, a1, a2, 0, 0)
#define VALGRIND_NON_SIMD_CALL3(fn, a1, a2, a3)                                                                           \
    VALGRIND_DO_CLIENT_REQUEST_EXPR(0, VG_USERREQ__CLIENT_CALL3, fn, a1, a2, a3, 0)

/* Prints to the log, each line marked with the process. Answers the number of bytes, 0 natively. */
static int VALGRIND_PRINTF(const char *grind_format, ...) __attribute__((__format__(__printf__, 1, 2), __unused__));
static int VALGRIND_PRINTF_BACKTRACE(const char *grind_format, ...)
    __attribute__((__format__(__printf__, 1, 2), __unused__));

static int VALGRIND_PRINTF(const char *grind_format, ...)
{
    unsigned long grind_answer;
    va_list grind_arguments;
    va_start(grind_arguments, grind_format);
    grind_answer = VALGRIND_DO_CLIENT_REQUEST_EXPR(0, VG_USERREQ__PRINTF_VALIST_BY_REF, grind_format, &grind_arguments, 0,
                                                   0, 0);
    va_end(grind_arguments);
    return (int)grind_answer;
}

/* The same, followed by a stack trace where the tool has one. */
static int VALGRIND_PRINTF_BACKTRACE(const char *grind_format, ...)
{
    unsigned long grind_answer;
    va_list grind_arguments;
    va_start(grind_arguments, grind_format);
    grind_answer = VALGRIND_DO_CLIENT_REQUEST_EXPR(0, VG_USERREQ__PRINTF_BACKTRACE_VALIST_BY_REF, grind_format,
                                                   &grind_arguments, 0, 0, 0);
    va_end(grind_arguments);
    return (int)grind_answer;
}

/* Options and errors. */
#define VALGRIND_COUNT_ERRORS ((unsigned)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, VG_USERREQ__COUNT_ERRORS, 0, 0, 0, 0, 0))
#define VALGRIND_MONITOR_COMMAND(command)                                                                                 \
    VALGRIND_DO_CLIENT_REQUEST_EXPR(0, VG_USERREQ__GDB_MONITOR_COMMAND, command, 0, 0, 0, 0)
#define VALGRIND_CLO_CHANGE(option) VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__CLO_CHANGE, option, 0, 0, 0, 0)
#define VALGRIND_DISABLE_ERROR_REPORTING                                                                                  \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__CHANGE_ERR_DISABLEMENT, 1, 0, 0, 0, 0)
#define VALGRIND_ENABLE_ERROR_REPORTING                                                                                   \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__CHANGE_ERR_DISABLEMENT, -1, 0, 0, 0, 0)

/* Memory: for tools that watch it. Profilers pay no heed. */
#define VALGRIND_MALLOCLIKE_BLOCK(addr, size, redzone, is_zeroed)                                                         \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__MALLOCLIKE_BLOCK, addr, size, redzone, is_zeroed, 0)
#define VALGRIND_RESIZEINPLACE_BLOCK(addr, old_size, new_size, redzone)                                                   \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__RESIZEINPLACE_BLOCK, addr, old_size, new_size, redzone, 0)
#define VALGRIND_FREELIKE_BLOCK(addr, redzone)                                                                            \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__FREELIKE_BLOCK, addr, redzone, 0, 0, 0)
#define VALGRIND_MEMPOOL_AUTO_FREE 1
#define VALGRIND_MEMPOOL_METAPOOL 2
#define VALGRIND_CREATE_MEMPOOL(pool, redzone, is_zeroed)                                                                 \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__CREATE_MEMPOOL, pool, redzone, is_zeroed, 0, 0)
#define VALGRIND_CREATE_MEMPOOL_EXT(pool, redzone, is_zeroed, flags)                                                      \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__CREATE_MEMPOOL, pool, redzone, is_zeroed, flags, 0)
#define VALGRIND_DESTROY_MEMPOOL(pool) VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__DESTROY_MEMPOOL, pool, 0, 0, 0, 0)
#define VALGRIND_MEMPOOL_ALLOC(pool, addr, size)                                                                          \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__MEMPOOL_ALLOC, pool, addr, size, 0, 0)
#define VALGRIND_MEMPOOL_FREE(pool, addr) VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__MEMPOOL_FREE, pool, addr, 0, 0, 0)
#define VALGRIND_MEMPOOL_TRIM(pool, addr, size)                                                                           \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__MEMPOOL_TRIM, pool, addr, size, 0, 0)
#define VALGRIND_MOVE_MEMPOOL(from, to) VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__MOVE_MEMPOOL, from, to, 0, 0, 0)
#define VALGRIND_MEMPOOL_CHANGE(pool, old_addr, new_addr, size)                                                           \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__MEMPOOL_CHANGE, pool, old_addr, new_addr, size, 0)
#define VALGRIND_MEMPOOL_EXISTS(pool)                                                                                     \
    ((unsigned)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, VG_USERREQ__MEMPOOL_EXISTS, pool, 0, 0, 0, 0))

/* Stacks that the program makes itself. */
#define VALGRIND_STACK_REGISTER(start, end)                                                                               \
    ((unsigned)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, VG_USERREQ__STACK_REGISTER, start, end, 0, 0, 0))
#define VALGRIND_STACK_DEREGISTER(id) VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__STACK_DEREGISTER, id, 0, 0, 0, 0)
#define VALGRIND_STACK_CHANGE(id, start, end)                                                                             \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__STACK_CHANGE, id, start, end, 0, 0)

/* The rest. */
#define VALGRIND_LOAD_PDB_DEBUGINFO(fd, ptr, total_size, delta)                                                           \
    VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__LOAD_PDB_DEBUGINFO, fd, ptr, total_size, delta, 0)
#define VALGRIND_MAP_IP_TO_SRCLOC(addr, buf64)                                                                            \
    ((unsigned)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, VG_USERREQ__MAP_IP_TO_SRCLOC, addr, buf64, 0, 0, 0))
#define VALGRIND_INNER_THREADS(addr) VALGRIND_DO_CLIENT_REQUEST_STMT(VG_USERREQ__INNER_THREADS, addr, 0, 0, 0, 0)

#endif
#endif
