// Runs arm64 Mach-O libraries in a process of aarch64 Linux: what the parts of the loader share.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct { uint64_t address, size; } Range;

// One library. Addresses in ranges are offsets from `base`, where its first segment is mapped.
typedef struct {
  const char* path;
  uint8_t* base;
  uint64_t size;
  Range segments[16];
  int segment_count;
  const uint8_t* link_edit; // what offsets in the file count from, for the tables of the linker
  uint64_t link_edit_begin, link_edit_end;
  Range exports, fixups, rebases, binds, weak_binds, lazy_binds; // offsets in the file
  Range unwind_info, eh_frame, initialisers, variables, thread_data;
  uint64_t thread_data_filled;
  bool initialisers_are_offsets;
} Image;

extern Image images[];
extern int image_count;
extern bool verbose;

// Ends the process with one line that says what is wrong.
_Noreturn void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// image.c
Image* map_image(const char* path);
Image* image_of(const void* address);
void* exported(const Image* image, const char* name);
uint64_t read_uleb(const uint8_t** at, const uint8_t* end);

// binding.c
void bind_image(Image* image);
void run_initialisers(Image* image);
void* address_of(const char* name);

// unknown.c: every name that nothing defines has its address, whose use ends the process and names it.
void* unknown_symbol(const char* name);
const char* unknown_symbol_at(const void* address);
int unknown_symbol_count(void);
void report_crashes(void);

// thread_variables.c
void prepare_thread_variables(Image* image, int number);
void run_thread_destructors(void);

// What Darwin's system library offers: `name` is a Mach-O symbol, with its underscore. The linker joins all into a table.
typedef struct {
  const char* name;
  void* address;
} Shim;
extern const Shim __start_shims[], __stop_shims[];
#define OFFER(symbol, what) \
  static const Shim offered_##symbol __attribute__((section("shims"), used, retain)) = {"_" #symbol, (void*)(what)}
#define SHIM(symbol, type, parameters) \
  static type shim_##symbol parameters; \
  OFFER(symbol, shim_##symbol); \
  static type shim_##symbol parameters
void* shim_named(const char* name);

// errors.c: Darwin's numbers of errors, and back
int darwin_error(int linux_error);
int linux_error(int darwin_error);
int* darwin_errno(void);

extern char** environment;
