// Makes code, runs it, puts other code in its place, and says what each is called: argv[1] says how. Each piece of code counts a
// register down: it executes twice as many instructions as that, and two more. With `thread` a second thread does that, when the first
// one has ended.
#define _GNU_SOURCE
#include <elf.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct entry { struct entry *next, *previous; const char *file; uint64_t size; };
struct descriptor { uint32_t version, action; struct entry *relevant, *first; };
struct descriptor __jit_debug_descriptor = { 1, 0, 0, 0 };
void __attribute__((noinline)) __jit_debug_register_code(void) { __asm__ volatile(""); }

static FILE *map, *dump;
static char *mode;
static uint64_t index_of_code;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void record(uint32_t kind, const void *body, size_t size, const char *name, const void *code, size_t length) {
    struct { uint32_t kind, size; uint64_t time; } head = { kind, 16 + size + length, now() };
    if (name) head.size += strlen(name) + 1;
    fwrite(&head, sizeof head, 1, dump);
    fwrite(body, size, 1, dump);
    if (name) fwrite(name, strlen(name) + 1, 1, dump);
    fwrite(code, length, 1, dump);
}

static void line_of(const void *at, const char *file, uint32_t line) {
    struct { uint64_t start, n, at; uint32_t line, column; } lines = { (uint64_t)at, 1, (uint64_t)at, line, 0 };
    record(2, &lines, sizeof lines, file, "", 0);
}

// An ELF file with one function.
static void enter(const char *name, uint64_t at, uint64_t size) {
    struct file { Elf64_Ehdr head; Elf64_Shdr sections[4]; Elf64_Sym symbols[2]; char names[64]; } *f = calloc(1, sizeof *f);
    memcpy(f->head.e_ident, "\177ELF\2\1\1", 7);
    f->head.e_type = ET_REL, f->head.e_machine = EM_X86_64, f->head.e_version = 1;
    f->head.e_shoff = offsetof(struct file, sections), f->head.e_ehsize = sizeof f->head;
    f->head.e_shentsize = sizeof(Elf64_Shdr), f->head.e_shnum = 4, f->head.e_shstrndx = 3;
    f->sections[1] = (Elf64_Shdr){ 1, SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, at, 0, size, 0, 0, 1, 0 };
    f->sections[2] = (Elf64_Shdr){ 7, SHT_SYMTAB, 0, 0, offsetof(struct file, symbols), sizeof f->symbols, 3, 1, 8, sizeof(Elf64_Sym) };
    f->sections[3] = (Elf64_Shdr){ 15, SHT_STRTAB, 0, 0, offsetof(struct file, names), sizeof f->names, 0, 0, 1, 0 };
    memcpy(f->names, "\0.text\0.symtab\0.strtab", 22);
    strcpy(f->names + 23, name);
    f->symbols[1] = (Elf64_Sym){ 23, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, 0, size };
    struct entry *e = malloc(sizeof *e);
    *e = (struct entry){ __jit_debug_descriptor.first, 0, (char *)f, sizeof *f };
    __jit_debug_descriptor.first = __jit_debug_descriptor.relevant = e;
    __jit_debug_descriptor.action = 1;
    __jit_debug_register_code();
}

static void leave(void) {
    struct entry *e = __jit_debug_descriptor.first;
    __jit_debug_descriptor.first = e->next;
    free((void *)e->file), free(e);
}

static void make(unsigned char *at, const char *name, uint32_t times) {
    unsigned char code[] = { 0xb9, 0, 0, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
    memcpy(code + 1, &times, 4);
    memcpy(at, code, sizeof code);
    if (map) {
        fprintf(map, "%lx %zx %s\n", (long)at, sizeof code, name);
        if (strcmp(mode, "buffered")) fflush(map);
    }
    if (dump) {
        struct { uint32_t pid, tid; uint64_t vma, at, size, index; } load = { getpid(), getpid(), (long)at, (long)at, sizeof code, ++index_of_code };
        line_of(at, "made.x", 7);
        record(0, &load, sizeof load, name, code, sizeof code);
        if (strcmp(mode, "late")) fflush(dump);
    }
    if (!strcmp(mode, "gdb")) enter(name, (long)at, sizeof code);
    ((void (*)(void))at)();
}

static int makes(char **argv, int shared) {
    char path[64];
    mode = argv[1];
    void *marker = 0;
    if (!strcmp(mode, "map") || !strcmp(mode, "buffered")) {
        snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
        map = fopen(path, "w");
    }
    if (!strcmp(mode, "dump") || !strcmp(mode, "late")) {
        snprintf(path, sizeof path, "jit-%d.dump", getpid());
        dump = fopen(path, "w+");
        struct { uint32_t magic, version, size, machine, pad, pid; uint64_t time, flags; } head = { 0x4a695444, 1, 40, 62, 0, getpid(), now(), 0 };
        fwrite(&head, sizeof head, 1, dump), fflush(dump);
        marker = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
        if (marker == MAP_FAILED) return 2;
    }
    unsigned char *code = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, shared | MAP_ANONYMOUS, -1, 0);
    make(code, "first", 1000);
    make(code + 2048, "beside", 30);
    if (!strcmp(mode, "gdb")) leave(), leave();
    // In the same place.
    make(code, "second", 500);
    ((void (*)(void))code)();
    if (dump) {
        struct { uint32_t pid, tid; uint64_t vma, old, new, size, index; } move = { getpid(), getpid(), 0, (long)code, (long)(code + 4096), 10, index_of_code };
        memcpy(code + 4096, code, 10);
        record(1, &move, sizeof move, 0, "", 0), fflush(dump);
        ((void (*)(void))(code + 4096))();
    } else {
        ((void (*)(void))code)();
    }
    fflush(stdout);
    if (map || !strcmp(mode, "gdb")) {
        // A copy knows what has been made.
        if (fork() == 0) {
            ((void (*)(void))code)();
            _exit(0);
        }
        wait(0);
    }
    if (map) fclose(map), unlink(path);
    if (dump) fclose(dump), unlink(path);
    return 0;
}

static char **words;

static void *alone(void *first) {
    pthread_join(*(pthread_t *)first, 0);
    // It can be waited for before the kernel shows it as ended.
    usleep(20000);
    exit(makes(words, MAP_PRIVATE));
}

int main(int argc, char **argv) {
    static pthread_t first, other;
    words = argv;
    if (argc < 3 || strcmp(argv[2], "thread")) return makes(argv, argc > 2 ? MAP_SHARED : MAP_PRIVATE);
    first = pthread_self();
    if (pthread_create(&other, 0, alone, &first)) return 3;
    pthread_exit(0);
}
