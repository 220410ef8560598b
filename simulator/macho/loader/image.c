// Maps a Mach-O library into memory and finds its parts and its exported names.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader.h"

enum {
  MAGIC = 0xFEEDFACF,
  CPU_ARM64 = 0x0100000C,
  SUBTYPE_ARM64E = 2,
  FILE_IS_DYLIB = 6,
  LC_SEGMENT_64 = 0x19,
  LC_DYLD_INFO = 0x22,
  LC_DYLD_EXPORTS_TRIE = 0x80000033,
  LC_DYLD_CHAINED_FIXUPS = 0x80000034,
  PAGE = 16384,
  MOST_IMAGES = 16,
};
#define LC_DYLD_INFO_ONLY 0x80000022u

enum {
  S_MOD_INIT_FUNC = 9,
  S_THREAD_REGULAR = 0x11,
  S_THREAD_ZEROFILL = 0x12,
  S_THREAD_VARIABLES = 0x13,
  S_INIT_OFFSETS = 0x16
};

Image images[MOST_IMAGES];
int image_count;

typedef struct {
  uint32_t command, size;
  char name[16];
  uint64_t address, memory, offset, bytes;
  uint32_t most, protection, sections, flags;
} Segment;

typedef struct {
  char name[16], segment[16];
  uint64_t address, size;
  uint32_t offset, alignment, relocations, relocation_count, flags, reserved[3];
} SectionEntry;

static uint32_t word(const uint8_t* command, int number) { return ((const uint32_t*)command)[number]; }

static Range words(const uint8_t* command, int number) {
  return (Range){word(command, number), word(command, number + 1)};
}

static uint64_t rounded(uint64_t size) { return (size + PAGE - 1) & ~(uint64_t)(PAGE - 1); }

static void note_section(Image* image, const SectionEntry* section) {
  Range range = {section->address, section->size};
  if (range.address + range.size > image->size)
    fail("%s: section %.16s lies outside its segments", image->path, section->name);
  if (!strncmp(section->name, "__unwind_info", 16)) image->unwind_info = range;
  if (!strncmp(section->name, "__eh_frame", 16)) image->eh_frame = range;
  switch (section->flags & 255) {
    case S_MOD_INIT_FUNC:
      image->initialisers = range;
      break;
    case S_INIT_OFFSETS:
      image->initialisers = range;
      image->initialisers_are_offsets = true;
      break;
    case S_THREAD_VARIABLES:
      image->variables = range;
      break;
    case S_THREAD_REGULAR:
    case S_THREAD_ZEROFILL:
      if (!image->thread_data.size) image->thread_data.address = range.address;
      image->thread_data.size = range.address + range.size - image->thread_data.address;
      if ((section->flags & 255) == S_THREAD_REGULAR) image->thread_data_filled = image->thread_data.size;
      break;
  }
}

// Segments begin at multiples of Darwin's 16 KB; this system's pages may be smaller.
static void map_segment(Image* image, const Segment* segment, int file, uint64_t file_size) {
  if (image->segment_count == 16) fail("%s: it has more than 16 segments", image->path);
  if (segment->offset + segment->bytes > file_size)
    fail(
        "%s: segment %.16s ends behind the end of the file, which has %llu bytes; fetch the wheel again", image->path,
        segment->name, (unsigned long long)file_size);
  if (segment->address % sysconf(_SC_PAGESIZE) || segment->offset % sysconf(_SC_PAGESIZE))
    fail("%s: segment %.16s is not aligned to this system's pages", image->path, segment->name);
  image->segments[image->segment_count++] = (Range){segment->address, segment->memory};
  int protection = segment->protection & 4 ? PROT_READ | PROT_EXEC : PROT_READ | PROT_WRITE;
  uint8_t* place = image->base + segment->address;
  if (segment->bytes &&
      mmap(place, segment->bytes, protection, MAP_PRIVATE | MAP_FIXED, file, segment->offset) == MAP_FAILED)
    fail("%s: segment %.16s cannot be mapped: %s", image->path, segment->name, strerror(errno));
  uint64_t page = sysconf(_SC_PAGESIZE), filled = (segment->bytes + page - 1) & ~(page - 1);
  if (segment->protection & 2) memset(place + segment->bytes, 0, filled - segment->bytes);
  if (segment->memory > filled &&
      mmap(
          place + filled, segment->memory - filled, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1,
          0) == MAP_FAILED)
    fail("%s: no memory for segment %.16s: %s", image->path, segment->name, strerror(errno));
  if (!strncmp(segment->name, "__LINKEDIT", 16)) {
    image->link_edit = place - segment->offset;
    image->link_edit_begin = segment->offset;
    image->link_edit_end = segment->offset + segment->bytes;
  }
  const SectionEntry* sections = (const SectionEntry*)(segment + 1);
  for (uint32_t i = 0; i < segment->sections; i++) note_section(image, &sections[i]);
}

static void note_command(Image* image, const uint8_t* command) {
  switch (word(command, 0)) {
    case LC_DYLD_INFO:
    case LC_DYLD_INFO_ONLY:
      image->rebases = words(command, 2);
      image->binds = words(command, 4);
      image->weak_binds = words(command, 6);
      image->lazy_binds = words(command, 8);
      image->exports = words(command, 10);
      break;
    case LC_DYLD_EXPORTS_TRIE:
      image->exports = words(command, 2);
      break;
    case LC_DYLD_CHAINED_FIXUPS:
      image->fixups = words(command, 2);
      break;
  }
}

// The load commands of an arm64 library, as they are in the file; `count` of them.
static const uint8_t* load_commands(const char* path, const uint8_t* file, uint64_t size, uint32_t* count) {
  const uint32_t* header = (const uint32_t*)file;
  if (size < 32 || header[0] != MAGIC) fail("%s is not a 64-bit Mach-O file", path);
  if (header[1] != CPU_ARM64) fail("%s is built for another processor than arm64 (%#x)", path, header[1]);
  if ((header[2] & 0xFFFFFF) == SUBTYPE_ARM64E) fail("%s is built for arm64e, which the loader does not know", path);
  if (header[3] != FILE_IS_DYLIB) fail("%s is not a library (type %u)", path, header[3]);
  const uint8_t* command = file + 32;
  if (header[5] > size - 32) fail("%s: its load commands end behind the end of the file; fetch the wheel again", path);
  for (uint32_t i = 0; i < header[4]; i++) {
    uint64_t left = file + 32 + header[5] - command;
    if (left < 8 || word(command, 1) < 8 || word(command, 1) > left) fail("%s: its load commands are damaged", path);
    if (word(command, 0) == LC_SEGMENT_64 &&
        (word(command, 1) < sizeof(Segment) ||
         ((const Segment*)command)->sections > (word(command, 1) - sizeof(Segment)) / sizeof(SectionEntry)))
      fail("%s: its load commands are damaged", path);
    command += word(command, 1);
  }
  *count = header[4];
  return file + 32;
}

Image* map_image(const char* path) {
  if (image_count == MOST_IMAGES) fail("%s is one library too many: the loader maps %d", path, MOST_IMAGES);
  int file = open(path, O_RDONLY);
  struct stat status;
  if (file < 0 || fstat(file, &status)) fail("%s: %s", path, strerror(errno));
  uint64_t size = status.st_size;
  uint8_t* whole = mmap(0, size ? size : 1, PROT_READ, MAP_PRIVATE, file, 0);
  if (whole == MAP_FAILED) fail("%s: %s", path, strerror(errno));
  Image* image = &images[image_count];
  image->path = path;
  uint32_t count;
  const uint8_t *first = load_commands(path, whole, size, &count), *command = first;
  for (uint32_t i = 0; i < count; i++, command += word(command, 1)) {
    const Segment* segment = (const Segment*)command;
    if (segment->command == LC_SEGMENT_64 && segment->address + segment->memory > image->size)
      image->size = segment->address + segment->memory;
    note_command(image, command);
  }
  uint8_t* space = mmap(0, image->size + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) fail("%s: no room for %llu bytes", path, (unsigned long long)image->size);
  image->base = (uint8_t*)rounded((uint64_t)space);
  command = first;
  for (uint32_t i = 0; i < count; i++, command += word(command, 1))
    if (word(command, 0) == LC_SEGMENT_64) map_segment(image, (const Segment*)command, file, size);
  munmap(whole, size);
  close(file);
  const Range* tables[] = {&image->exports, &image->fixups,     &image->rebases,
                           &image->binds,   &image->weak_binds, &image->lazy_binds};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    if (tables[i]->size &&
        (tables[i]->address < image->link_edit_begin || tables[i]->address + tables[i]->size > image->link_edit_end))
      fail("%s: a table of the linker lies outside __LINKEDIT", path);
  prepare_thread_variables(image, image_count++);
  return image;
}

Image* image_of(const void* address) {
  for (int i = 0; i < image_count; i++)
    if ((const uint8_t*)address >= images[i].base && (const uint8_t*)address < images[i].base + images[i].size)
      return &images[i];
  return NULL;
}

uint64_t read_uleb(const uint8_t** at, const uint8_t* end) {
  uint64_t value = 0;
  for (int shift = 0; *at < end && shift < 64; shift += 7) {
    uint8_t byte = *(*at)++;
    value |= (uint64_t)(byte & 127) << shift;
    if (!(byte & 128)) return value;
  }
  fail("a number in a table of the linker is damaged");
}

// Walks down the trie of names. NULL for a name that the library does not define itself.
void* exported(const Image* image, const char* name) {
  const uint8_t *trie = image->link_edit + image->exports.address, *end = trie + image->exports.size, *at = trie;
  if (!image->exports.size) return NULL;
  for (;;) {
    uint64_t size = read_uleb(&at, end);
    if (!*name) {
      uint64_t flags = size ? read_uleb(&at, end) : 8;
      if (flags & 8) return NULL; // nothing here, or exported from another library
      uint64_t address = read_uleb(&at, end);
      return (flags & 3) == 2 ? (void*)address : image->base + address;
    }
    at += size;
    if (at >= end) return NULL;
    const uint8_t* next = NULL;
    for (int children = *at++; children && !next; children--) {
      size_t length = strnlen((const char*)at, end - at);
      bool matches = !strncmp((const char*)at, name, length);
      at += length + 1;
      if (at >= end) return NULL;
      uint64_t offset = read_uleb(&at, end);
      if (matches && length) {
        if (offset >= image->exports.size) return NULL;
        next = trie + offset;
        name += length;
      }
    }
    if (!next) return NULL;
    at = next;
  }
}
