// A directory shown as a file system that takes names in another case for the same one, and keeps the case that they were
// given, as APFS does: for `npm run test:folding`. libfuse 3, one thread. Usage: folding DIRECTORY MOUNTPOINT -s
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <fuse.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
static char base[PATH_MAX];
// Finds the name that a directory has for another spelling of it.
static void spell(const char *path, char *out) {
  strcpy(out, base);
  const char *p = path;
  while (*p) {
    while (*p == '/') p++;
    if (!*p) break;
    const char *e = strchrnul(p, '/');
    char name[NAME_MAX + 1];
    size_t n = e - p; if (n > NAME_MAX) n = NAME_MAX;
    memcpy(name, p, n); name[n] = 0;
    char try[PATH_MAX]; struct stat st;
    snprintf(try, sizeof try, "%s/%s", out, name);
    if (lstat(try, &st) != 0) {
      DIR *d = opendir(out);
      if (d) { struct dirent *x; while ((x = readdir(d))) if (!strcasecmp(x->d_name, name)) { strcpy(name, x->d_name); break; } closedir(d); }
    }
    strcat(out, "/"); strcat(out, name);
    p = e;
  }
}
#define P char at[PATH_MAX]; spell(path, at);
#define R(x) return (x) == -1 ? -errno : 0
static int f_getattr(const char *path, struct stat *st, struct fuse_file_info *fi) { if (fi) R(fstat(fi->fh, st)); P R(lstat(at, st)); }
static int f_readlink(const char *path, char *buf, size_t n) { P ssize_t r = readlink(at, buf, n - 1); if (r == -1) return -errno; buf[r] = 0; return 0; }
static int f_mkdir(const char *path, mode_t m) { P R(mkdir(at, m)); }
static int f_unlink(const char *path) { P R(unlink(at)); }
static int f_rmdir(const char *path) { P R(rmdir(at)); }
static int f_symlink(const char *to, const char *path) { P R(symlink(to, at)); }
static int f_mknod(const char *path, mode_t m, dev_t d) { P R(S_ISFIFO(m) ? mkfifo(at, m) : mknod(at, m, d)); }
static int f_rename(const char *from, const char *path, unsigned flags) {
  char a[PATH_MAX]; spell(from, a); P
  struct stat x, y; char to[PATH_MAX], *slash = strrchr(at, '/');
  // The new name gets the spelling that was asked for.
  snprintf(to, sizeof to, "%.*s/%s", (int)(slash - at), at, strrchr(path, '/') + 1);
  if (lstat(a, &x) == -1) return -errno;
  if (strcmp(at, to) != 0 && lstat(at, &y) == 0 && (x.st_ino != y.st_ino)) { if (flags) return -EEXIST; if (S_ISDIR(y.st_mode) ? rmdir(at) : unlink(at)) return -errno; }
  R(rename(a, to));
}
static int f_link(const char *from, const char *path) { char a[PATH_MAX]; spell(from, a); P R(linkat(AT_FDCWD, a, AT_FDCWD, at, 0)); }
static int f_chmod(const char *path, mode_t m, struct fuse_file_info *fi) { P R(chmod(at, m)); }
static int f_chown(const char *path, uid_t u, gid_t g, struct fuse_file_info *fi) { P R(lchown(at, u, g)); }
static int f_truncate(const char *path, off_t n, struct fuse_file_info *fi) { if (fi) R(ftruncate(fi->fh, n)); P R(truncate(at, n)); }
static int f_open(const char *path, struct fuse_file_info *fi) { P int fd = open(at, fi->flags); if (fd == -1) return -errno; fi->fh = fd; fi->direct_io = 0; return 0; }
static int f_create(const char *path, mode_t m, struct fuse_file_info *fi) { P int fd = open(at, fi->flags, m); if (fd == -1) return -errno; fi->fh = fd; return 0; }
static int f_read(const char *p, char *b, size_t n, off_t o, struct fuse_file_info *fi) { ssize_t r = pread(fi->fh, b, n, o); return r == -1 ? -errno : r; }
static int f_write(const char *p, const char *b, size_t n, off_t o, struct fuse_file_info *fi) { ssize_t r = pwrite(fi->fh, b, n, o); return r == -1 ? -errno : r; }
static int f_release(const char *p, struct fuse_file_info *fi) { close(fi->fh); return 0; }
static int f_fsync(const char *p, int d, struct fuse_file_info *fi) { R(fsync(fi->fh)); }
static int f_readdir(const char *path, void *b, fuse_fill_dir_t fill, off_t o, struct fuse_file_info *fi, enum fuse_readdir_flags fl) {
  P DIR *d = opendir(at); if (!d) return -errno; struct dirent *x;
  while ((x = readdir(d))) { struct stat st = {0}; st.st_ino = x->d_ino; st.st_mode = x->d_type << 12; fill(b, x->d_name, &st, 0, 0); }
  closedir(d); return 0;
}
static int f_statfs(const char *path, struct statvfs *s) { P R(statvfs(at, s)); }
static int f_utimens(const char *path, const struct timespec t[2], struct fuse_file_info *fi) { P R(utimensat(AT_FDCWD, at, t, AT_SYMLINK_NOFOLLOW)); }
static int f_access(const char *path, int m) { P R(access(at, m)); }
static void *f_init(struct fuse_conn_info *c, struct fuse_config *cfg) { cfg->use_ino = 1; cfg->entry_timeout = cfg->attr_timeout = cfg->negative_timeout = 0; cfg->hard_remove = 1; return NULL; }
static const struct fuse_operations ops = { .init = f_init, .getattr = f_getattr, .readlink = f_readlink, .mkdir = f_mkdir, .unlink = f_unlink, .rmdir = f_rmdir, .symlink = f_symlink, .mknod = f_mknod, .rename = f_rename, .link = f_link, .chmod = f_chmod, .chown = f_chown, .truncate = f_truncate, .open = f_open, .create = f_create, .read = f_read, .write = f_write, .release = f_release, .fsync = f_fsync, .readdir = f_readdir, .statfs = f_statfs, .utimens = f_utimens, .access = f_access };
int main(int argc, char **argv) { if (!realpath(argv[1], base)) return 1; argv[1] = argv[0]; umask(0); return fuse_main(argc - 1, argv + 1, &ops, NULL); }
