// Files: streams, file status and folders, whose structures differ.
#define _GNU_SOURCE
#include "files.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <wchar.h>

#include "loader.h"

static DarwinFile standard[3];
static DarwinFile *standard_input = &standard[0], *standard_output = &standard[1], *standard_error = &standard[2];

FILE* linux_file(DarwinFile* file) {
  FILE* const files[] = {stdin, stdout, stderr};
  if (file >= standard && file < standard + 3) return files[file - standard];
  return file ? file->file : NULL;
}

static DarwinFile* darwin_file(FILE* file) {
  if (!file) return NULL;
  DarwinFile* made = calloc(1, sizeof *made);
  if (!made) fail("no memory for a file");
  made->file = file;
  return made;
}

SHIM(fclose, int, (DarwinFile * file)) {
  int code = fclose(linux_file(file));
  if (file < standard || file >= standard + 3) free(file);
  return code;
}
SHIM(__swbuf, int, (int character, DarwinFile* file)) {
  file->to_write = 0;
  return putc(character, linux_file(file));
}
SHIM(__srget, int, (DarwinFile * file)) {
  file->to_read = 0;
  return getc(linux_file(file));
}
SHIM(fopen, DarwinFile*, (const char* path, const char* mode)) { return darwin_file(fopen(path, mode)); }
SHIM(fdopen, DarwinFile*, (int number, const char* mode)) { return darwin_file(fdopen(number, mode)); }
SHIM(freopen, DarwinFile*, (const char* path, const char* mode, DarwinFile* file)) {
  return freopen(path, mode, linux_file(file)) ? file : NULL;
}
SHIM(fread, size_t, (void* to, size_t size, size_t count, DarwinFile* file)) {
  return fread(to, size, count, linux_file(file));
}
SHIM(fwrite, size_t, (const void* from, size_t size, size_t count, DarwinFile* file)) {
  return fwrite(from, size, count, linux_file(file));
}
SHIM(fputc, int, (int character, DarwinFile* file)) { return fputc(character, linux_file(file)); }
SHIM(fputs, int, (const char* text, DarwinFile* file)) { return fputs(text, linux_file(file)); }
SHIM(getc, int, (DarwinFile * file)) { return getc(linux_file(file)); }
SHIM(ungetc, int, (int character, DarwinFile* file)) { return ungetc(character, linux_file(file)); }
SHIM(fgets, char*, (char* to, int size, DarwinFile* file)) { return fgets(to, size, linux_file(file)); }
SHIM(fflush, int, (DarwinFile * file)) { return fflush(linux_file(file)); }
SHIM(fseek, int, (DarwinFile * file, long offset, int from)) { return fseek(linux_file(file), offset, from); }
SHIM(ftell, long, (DarwinFile * file)) { return ftell(linux_file(file)); }
SHIM(rewind, void, (DarwinFile * file)) { rewind(linux_file(file)); }
SHIM(fileno, int, (DarwinFile * file)) { return fileno(linux_file(file)); }
SHIM(feof, int, (DarwinFile * file)) { return feof(linux_file(file)); }
SHIM(ferror, int, (DarwinFile * file)) { return ferror(linux_file(file)); }
SHIM(setbuf, void, (DarwinFile * file, char* buffer)) { setbuf(linux_file(file), buffer); }
SHIM(flockfile, void, (DarwinFile * file)) { flockfile(linux_file(file)); }
SHIM(funlockfile, void, (DarwinFile * file)) { funlockfile(linux_file(file)); }
SHIM(getwc, wint_t, (DarwinFile * file)) { return getwc(linux_file(file)); }
SHIM(fputwc, wint_t, (wchar_t character, DarwinFile* file)) { return fputwc(character, linux_file(file)); }
SHIM(ungetwc, wint_t, (wint_t character, DarwinFile* file)) { return ungetwc(character, linux_file(file)); }

typedef struct {
  int32_t device;
  uint16_t mode, links;
  uint64_t number;
  uint32_t user, group;
  int32_t special;
  struct timespec accessed, modified, changed, created;
  int64_t size, blocks;
  int32_t block_size;
  uint32_t flags, generation;
  int32_t spare;
  int64_t spares[2];
} DarwinStatus;

static int status(int code, const struct stat* from, DarwinStatus* to) {
  if (code) return code;
  *to = (DarwinStatus){
      .device = from->st_dev,
      .mode = from->st_mode,
      .links = from->st_nlink,
      .number = from->st_ino,
      .user = from->st_uid,
      .group = from->st_gid,
      .special = from->st_rdev,
      .accessed = from->st_atim,
      .modified = from->st_mtim,
      .changed = from->st_ctim,
      .created = from->st_ctim,
      .size = from->st_size,
      .blocks = from->st_blocks,
      .block_size = from->st_blksize,
  };
  return 0;
}
SHIM(stat, int, (const char* path, DarwinStatus* to)) {
  struct stat from;
  return status(stat(path, &from), &from, to);
}
SHIM(lstat, int, (const char* path, DarwinStatus* to)) {
  struct stat from;
  return status(lstat(path, &from), &from, to);
}
SHIM(fstat, int, (int number, DarwinStatus* to)) {
  struct stat from;
  return status(fstat(number, &from), &from, to);
}

typedef struct {
  uint64_t number, offset;
  uint16_t size, length;
  uint8_t kind;
  char name[1024];
} DarwinEntry;

// The entry that was read last; a folder is read by one thread.
static __thread DarwinEntry last_entry;

SHIM(readdir, DarwinEntry*, (DIR * folder)) {
  const struct dirent* found = readdir(folder);
  if (!found) return NULL;
  last_entry =
      (DarwinEntry){.number = found->d_ino, .offset = found->d_off, .size = sizeof last_entry, .kind = found->d_type};
  last_entry.length = strlen(found->d_name);
  memcpy(last_entry.name, found->d_name, last_entry.length + 1);
  return &last_entry;
}

// clang-format off
OFFER(__stdinp, &standard_input);
OFFER(__stdoutp, &standard_output);
OFFER(__stderrp, &standard_error);
OFFER(putc, shim_fputc);
OFFER(fseeko, shim_fseek);
OFFER(ftello, shim_ftell);
