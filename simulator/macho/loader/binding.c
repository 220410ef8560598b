// Fills in the addresses of a library: chained fixups, or the older lists of rebases and binds. Runs its initialisers.
#include <stdlib.h>
#include <string.h>

#include "loader.h"

static const uint8_t* table(const Image* image, Range range) { return image->link_edit + range.address; }

static int bound; // how many libraries are bound, that which is being bound included

static void* exported_by(int first, int end, const char* name) {
  for (int i = first; i < end; i++) {
    void* found = exported(&images[i], name);
    if (found) return found;
  }
  return NULL;
}

static void* defined(const char* name) {
  void* found = exported_by(0, bound, name);
  return found ? found : shim_named(name);
}

// Libraries that need each other, such as torch and what stands in for MPSGraph: one of them comes first.
void* address_of(const char* name) {
  void* found = defined(name);
  if (!found) found = exported_by(bound, image_count, name);
  return found ? found : unknown_symbol(name);
}

static uint64_t* slot(const Image* image, int segment, uint64_t offset) {
  if (segment >= image->segment_count || offset + 8 > image->segments[segment].size)
    fail("%s: an address to fill in lies outside segment %d", image->path, segment);
  return (uint64_t*)(image->base + image->segments[segment].address + offset);
}

// ---- chained fixups: the values to fill in form a list through the pages that hold them

enum { POINTER_64 = 2, POINTER_64_OFFSET = 6, NO_CHAIN = 0xFFFF };

static uint64_t* imported(const Image* image, const uint8_t* header, uint64_t size) {
  const uint32_t* fields = (const uint32_t*)header;
  uint32_t imports = fields[2], names = fields[3], count = fields[4], format = fields[5];
  if (format < 1 || format > 3 || fields[6])
    fail(
        "%s: its imports have format %u, names %u; the loader knows 1 to 3, not compressed", image->path, format,
        fields[6]);
  static const uint8_t entry_sizes[] = {0, 4, 8, 16};
  if (imports + (uint64_t)count * entry_sizes[format] > size) fail("%s: its table of imports is damaged", image->path);
  uint64_t* values = calloc(count + 1, sizeof *values);
  for (uint32_t i = 0; i < count; i++) {
    const uint8_t* entry = header + imports + i * entry_sizes[format];
    uint32_t name = format == 3 ? *(const uint64_t*)entry >> 32 : *(const uint32_t*)entry >> 9;
    int64_t addend = format == 1 ? 0 : format == 2 ? ((const int32_t*)entry)[1] : ((const int64_t*)entry)[1];
    if (names + (uint64_t)name >= size) fail("%s: its table of imports is damaged", image->path);
    values[i] = (uint64_t)address_of((const char*)header + names + name) + addend;
  }
  values[count] = 0;
  return values;
}

static void follow_chain(
    const Image* image, uint64_t* at, const uint64_t* end, uint16_t format, const uint64_t* values, uint32_t count) {
  for (;;) {
    if (at >= end) fail("%s: a chain of fixups leaves its segment", image->path);
    uint64_t value = *at, next = value >> 51 & 0xFFF;
    if (value >> 63) {
      uint32_t number = value & 0xFFFFFF;
      if (number >= count) fail("%s: a fixup refers to import %u of %u", image->path, number, count);
      *at = values[number] + (value >> 24 & 255);
    } else {
      uint64_t target = value & 0xFFFFFFFFFull, high = value >> 36 & 255;
      *at = (uint64_t)image->base + target + (high << 56); // both formats: the library's own first address is 0
    }
    if (!next) return;
    at = (uint64_t*)((uint8_t*)at + next * 4);
  }
}

static void bind_chains(const Image* image) {
  const uint8_t* header = table(image, image->fixups);
  const uint32_t* fields = (const uint32_t*)header;
  uint64_t size = image->fixups.size;
  if (size < 28 || fields[1] + 4ull > size) fail("%s: its chained fixups are damaged", image->path);
  uint64_t* values = imported(image, header, size);
  const uint8_t* starts = header + fields[1];
  for (uint32_t i = 0; i < *(const uint32_t*)starts; i++) {
    uint32_t offset = ((const uint32_t*)starts)[1 + i];
    if (!offset) continue;
    const uint8_t* segment = starts + offset;
    if (segment + 22 > header + size) fail("%s: its chained fixups are damaged", image->path);
    uint16_t page = *(const uint16_t*)(segment + 4), format = *(const uint16_t*)(segment + 6);
    uint16_t pages = *(const uint16_t*)(segment + 20);
    if (format != POINTER_64 && format != POINTER_64_OFFSET)
      fail(
          "%s: its pointers have format %u; the loader knows %d and %d", image->path, format, POINTER_64,
          POINTER_64_OFFSET);
    if (segment + 22 + 2 * pages > header + size) fail("%s: its chained fixups are damaged", image->path);
    for (uint16_t number = 0; number < pages; number++) {
      uint16_t first = ((const uint16_t*)(segment + 22))[number];
      if (first == NO_CHAIN) continue;
      if (i >= (uint32_t)image->segment_count) fail("%s: its chained fixups are damaged", image->path);
      uint64_t* end = (uint64_t*)(image->base + image->segments[i].address + image->segments[i].size);
      follow_chain(image, slot(image, i, (uint64_t)number * page + first), end, format, values, fields[4]);
    }
  }
  free(values);
}

// ---- the older lists: small programs whose instructions fill in addresses

typedef struct {
  const Image* image;
  const uint8_t *at, *end;
  int segment;
  uint64_t offset;
} Program;

static int64_t read_sleb(Program* program) {
  int64_t value = 0;
  for (int shift = 0; program->at < program->end;) {
    uint8_t byte = *program->at++;
    value |= (int64_t)(byte & 127) << shift;
    shift += 7;
    if (byte & 128) continue;
    return byte & 64 && shift < 64 ? value | -1ll << shift : value;
  }
  fail("%s: a list of binds is damaged", program->image->path);
}

static uint64_t number(Program* program) { return read_uleb(&program->at, program->end); }

static void rebase_slots(Program* program, uint64_t count, uint64_t skipped) {
  for (; count; count--, program->offset += 8 + skipped)
    *slot(program->image, program->segment, program->offset) += (uint64_t)program->image->base;
}

static void rebase(const Image* image) {
  Program program = {image, table(image, image->rebases), table(image, image->rebases) + image->rebases.size, 0, 0};
  while (program.at < program.end) {
    uint8_t byte = *program.at++, small = byte & 15;
    uint64_t count;
    switch (byte >> 4) {
      case 0:
        return;
      case 1:
        break; // the kind of address: there is only one on arm64
      case 2:
        program.segment = small, program.offset = number(&program);
        break;
      case 3:
        program.offset += number(&program);
        break;
      case 4:
        program.offset += small * 8;
        break;
      case 5:
        rebase_slots(&program, small, 0);
        break;
      case 6:
        rebase_slots(&program, number(&program), 0);
        break;
      case 7:
        rebase_slots(&program, 1, number(&program));
        break;
      case 8:
        count = number(&program), rebase_slots(&program, count, number(&program));
        break;
      default:
        fail("%s: an unknown instruction %#x in its list of rebases", image->path, byte);
    }
  }
}

// Without a name the slots keep what they have.
static void bind_slots(Program* program, const char* name, int64_t addend, uint64_t count, uint64_t skipped) {
  uint64_t value = name ? (uint64_t)address_of(name) + addend : 0;
  for (; count; count--, program->offset += 8 + skipped)
    if (name) *slot(program->image, program->segment, program->offset) = value;
}

typedef enum { NOW, LAZY, WEAK } Kind; // a lazy list has an end after each entry

static void bind_list(const Image* image, Range range, Kind kind) {
  Program program = {image, table(image, range), table(image, range) + range.size, 0, 0};
  const char* name = "";
  int64_t addend = 0;
  while (program.at < program.end) {
    uint8_t byte = *program.at++, small = byte & 15;
    uint64_t count;
    switch (byte >> 4) {
      case 0: // the end of the list, or of one entry
        if (kind != LAZY) return;
        break;
      case 1:
      case 3:
      case 5:
        break; // which library, and the kind of address
      case 2:
        number(&program);
        break;
      case 4:
        name = (const char*)program.at;
        program.at += strnlen(name, program.end - program.at) + 1;
        if (kind == WEAK && !defined(name)) name = NULL; // the library's own definition, which it does not export
        break;
      case 6:
        addend = read_sleb(&program);
        break;
      case 7:
        program.segment = small, program.offset = number(&program);
        break;
      case 8:
        program.offset += number(&program);
        break;
      case 9:
        bind_slots(&program, name, addend, 1, 0);
        break;
      case 10:
        bind_slots(&program, name, addend, 1, number(&program));
        break;
      case 11:
        bind_slots(&program, name, addend, 1, small * 8);
        break;
      case 12:
        count = number(&program), bind_slots(&program, name, addend, count, number(&program));
        break;
      default:
        fail("%s: an unknown instruction %#x in its list of binds", image->path, byte);
    }
  }
}

void bind_image(Image* image) {
  bound++;
  if (image->fixups.size) {
    bind_chains(image);
    return;
  }
  rebase(image);
  bind_list(image, image->binds, NOW);
  bind_list(image, image->lazy_binds, LAZY);
  bind_list(image, image->weak_binds, WEAK);
}

typedef void Initialiser(int count, char** arguments, char** environment, char** apple, void* versions);

void run_initialisers(Image* image) {
  static char* arguments[] = {"mpsmith", NULL};
  uint64_t count = image->initialisers.size / (image->initialisers_are_offsets ? 4 : 8);
  void* first = image->base + image->initialisers.address;
  for (uint64_t i = 0; i < count; i++) {
    void* place = image->initialisers_are_offsets ? image->base + ((uint32_t*)first)[i] : ((void**)first)[i];
    if (image_of(place) != image)
      fail("%s: initialiser %llu lies outside the library", image->path, (unsigned long long)i);
    ((Initialiser*)place)(1, arguments, environment, arguments + 1, NULL);
  }
}
