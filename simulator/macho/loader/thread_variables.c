// Thread-local variables of the libraries, and what runs when a thread ends.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "loader.h"

enum { MOST_IMAGES = 16 };

typedef struct Destructor {
  void (*function)(void*);
  void* object;
  struct Destructor* next;
} Destructor;

typedef struct {
  uint8_t* blocks[MOST_IMAGES];
  Destructor* destructors;
} Thread;

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static __thread Thread* current;

static void run_destructors(Thread* thread) {
  while (thread->destructors) {
    Destructor* first = thread->destructors;
    thread->destructors = first->next;
    first->function(first->object);
    free(first);
  }
}

// Destructors may use thread-local variables, so that the memory goes last.
static void thread_ended(void* argument) {
  Thread* thread = argument;
  run_destructors(thread);
  for (int i = 0; i < MOST_IMAGES; i++) free(thread->blocks[i]);
  free(thread);
  current = NULL;
}

static void create_key(void) {
  if (pthread_key_create(&key, thread_ended)) fail("no key for thread-local variables");
}

static Thread* this_thread(void) {
  if (current) return current;
  pthread_once(&key_once, create_key);
  current = calloc(1, sizeof *current);
  if (!current || pthread_setspecific(key, current)) fail("no memory for thread-local variables");
  return current;
}

// What the code of a variable's descriptor calls: {code, number of the image, offset}.
void* thread_variable(const uint64_t* descriptor) {
  uint8_t** block = &this_thread()->blocks[descriptor[1]];
  if (!*block) {
    const Image* image = &images[descriptor[1]];
    *block = aligned_alloc(64, (image->thread_data.size + 127) & ~63ull);
    if (!*block) fail("%s: no memory for thread-local variables", image->path);
    memset(*block, 0, image->thread_data.size);
    memcpy(*block, image->base + image->thread_data.address, image->thread_data_filled);
  }
  return *block + descriptor[2];
}

// The caller relies on every register but x0, x16 and x17. The first part answers for a block that is there.
extern void thread_variable_code(void);
_Static_assert(offsetof(Thread, blocks) == 0, "the code below takes blocks for the first field");
__asm__(
    ".globl thread_variable_code\n"
    "thread_variable_code:\n"
    "  mrs x16, tpidr_el0\n"
    "  add x16, x16, :tprel_hi12:current\n"
    "  ldr x16, [x16, :tprel_lo12_nc:current]\n"
    "  cbz x16, 1f\n"
    "  ldr x17, [x0, #8]\n"
    "  ldr x16, [x16, x17, lsl #3]\n"
    "  cbz x16, 1f\n"
    "  ldr x17, [x0, #16]\n"
    "  add x0, x16, x17\n"
    "  ret\n"
    "1:\n"
    "  stp x29, x30, [sp, #-16]!\n"
    "  mov x29, sp\n"
    "  sub sp, sp, #656\n"
    "  stp x1, x2, [sp]\n  stp x3, x4, [sp, #16]\n  stp x5, x6, [sp, #32]\n  stp x7, x8, [sp, #48]\n"
    "  stp x9, x10, [sp, #64]\n  stp x11, x12, [sp, #80]\n  stp x13, x14, [sp, #96]\n  stp x15, x18, [sp, #112]\n"
    "  add x16, sp, #144\n"
    "  st1 {v0.2d-v3.2d}, [x16], #64\n  st1 {v4.2d-v7.2d}, [x16], #64\n  st1 {v8.2d-v11.2d}, [x16], #64\n"
    "  st1 {v12.2d-v15.2d}, [x16], #64\n  st1 {v16.2d-v19.2d}, [x16], #64\n  st1 {v20.2d-v23.2d}, [x16], #64\n"
    "  st1 {v24.2d-v27.2d}, [x16], #64\n  st1 {v28.2d-v31.2d}, [x16], #64\n"
    "  bl thread_variable\n"
    "  add x16, sp, #144\n"
    "  ld1 {v0.2d-v3.2d}, [x16], #64\n  ld1 {v4.2d-v7.2d}, [x16], #64\n  ld1 {v8.2d-v11.2d}, [x16], #64\n"
    "  ld1 {v12.2d-v15.2d}, [x16], #64\n  ld1 {v16.2d-v19.2d}, [x16], #64\n  ld1 {v20.2d-v23.2d}, [x16], #64\n"
    "  ld1 {v24.2d-v27.2d}, [x16], #64\n  ld1 {v28.2d-v31.2d}, [x16], #64\n"
    "  ldp x1, x2, [sp]\n  ldp x3, x4, [sp, #16]\n  ldp x5, x6, [sp, #32]\n  ldp x7, x8, [sp, #48]\n"
    "  ldp x9, x10, [sp, #64]\n  ldp x11, x12, [sp, #80]\n  ldp x13, x14, [sp, #96]\n  ldp x15, x18, [sp, #112]\n"
    "  mov sp, x29\n"
    "  ldp x29, x30, [sp], #16\n"
    "  ret\n");

void prepare_thread_variables(Image* image, int number) {
  uint64_t (*descriptors)[3] = (void*)(image->base + image->variables.address);
  for (uint64_t i = 0; i < image->variables.size / sizeof *descriptors; i++) descriptors[i][1] = number;
}

void run_thread_destructors(void) {
  if (current) run_destructors(current);
}

SHIM(_tlv_atexit, void, (void (*function)(void*), void* object)) {
  Destructor* destructor = malloc(sizeof *destructor);
  if (!destructor) fail("no memory for the destructor of a thread-local variable");
  *destructor = (Destructor){function, object, this_thread()->destructors};
  this_thread()->destructors = destructor;
}

// The last function that was registered runs first. A library is never closed, so that all of them wait for the end.
static Destructor* at_exit;
static pthread_mutex_t at_exit_lock = PTHREAD_MUTEX_INITIALIZER;

static void run_at_exit(void) {
  for (;;) {
    pthread_mutex_lock(&at_exit_lock);
    Destructor* first = at_exit;
    if (first) at_exit = first->next;
    pthread_mutex_unlock(&at_exit_lock);
    if (!first) return;
    first->function(first->object);
  }
}

SHIM(__cxa_atexit, int, (void (*function)(void*), void* object, void* library)) {
  (void)library;
  Destructor* destructor = malloc(sizeof *destructor);
  if (!destructor) return -1;
  pthread_mutex_lock(&at_exit_lock);
  static bool registered;
  if (!registered) registered = !atexit(run_at_exit);
  *destructor = (Destructor){function, object, at_exit};
  at_exit = destructor;
  pthread_mutex_unlock(&at_exit_lock);
  return 0;
}

SHIM(exit, void, (int code)) {
  run_thread_destructors();
  exit(code);
}

// clang-format off
OFFER(_tlv_bootstrap, thread_variable_code);
