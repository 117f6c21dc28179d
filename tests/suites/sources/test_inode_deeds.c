// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_INODE: what each change reports, for each interest
 *
 *	change			watch of the file	of its directory
 *	write, truncate		MODIFY			-
 *	chmod			ATTRIB			-
 *	creat, link		ATTRIB (link)		CREATE
 *	rename			RENAME			RENAME
 *	unlink			ATTRIB			REMOVE
 *	unlink the last name	ATTRIB | REMOVE		REMOVE
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "helpers.h"
#include "inode.h"

/*
 * How a change is reported. The test makes the changes of a list in its order.
 */
struct deed {
	const char	*name;
	int		(*fn)(void);
	uint32_t	bits;
};

static int do_write(void) { write_path("d/f"); return 0; }
static int do_ftruncate(void) { return truncate("d/f", 100); }
static int do_chmod(void) { return chmod("d/f", 0640); }
static int do_chown(void) { return chown("d/f", 7, 8); }
static int do_times(void) { return utimensat(AT_FDCWD, "d/f", NULL, 0); }
static int do_link(void) { return link("d/f", "d/g"); }
static int do_link_out(void) { return link("d/f", "out"); }
static int do_unlink_g(void) { return unlink("d/g"); }
static int do_unlink_out(void) { return unlink("out"); }
static int do_rename(void) { return rename("d/f", "d/h"); }
static int do_rename_back(void) { return rename("d/h", "d/f"); }
static int do_rename_out(void) { return rename("d/f", "f"); }
static int do_rename_in(void) { return rename("f", "d/f"); }
static int do_unlink(void) { return unlink("d/f"); }
static int do_creat(void) { touch("d/f"); return 0; }
static int do_mkdir(void) { return mkdir("d/sub", 0700); }
static int do_creat_below(void) { touch("d/sub/f"); return 0; }
static int do_unlink_below(void) { return unlink("d/sub/f"); }
static int do_rmdir(void) { return rmdir("d/sub"); }
static int do_symlink(void) { return symlink("f", "d/s"); }
static int do_unlink_s(void) { return unlink("d/s"); }
static int do_mkfifo(void) { return mkfifo("d/p", 0600); }
static int do_unlink_p(void) { return unlink("d/p"); }
static int do_chmod_dir(void) { return chmod("d", 0750); }
static int do_rename_dir(void) { return rename("d", "e"); }
static int do_rename_dir_back(void) { return rename("e", "d"); }

static int do_mtime(void)
{
	const struct timespec times[2] = {
		{ .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_NOW },
	};

	return utimensat(AT_FDCWD, "d/f", times, 0);
}

static int do_allocate(void)
{
	int fd = open_file("d/f"), ret = fallocate(fd, 0, 0, 8192);

	close(fd);
	return ret;
}

static int do_read(void)
{
	int fd = open_file("d/f");
	char c;

	return read(fd, &c, 1) != 1 || close(fd);
}

/* Stores through a mapping are not reported. */
static int do_mmap(void)
{
	int fd = open_file("d/f");
	char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			 0);

	if (map == MAP_FAILED)
		return -1;
	map[0] = 1;
	return msync(map, 4096, MS_SYNC) || munmap(map, 4096) || close(fd);
}

static const struct deed file_deeds[] = {
	{ "write", do_write, MODIFY },
	{ "truncate", do_ftruncate, MODIFY },
	{ "fallocate", do_allocate, MODIFY },
	{ "set mtime", do_mtime, MODIFY },
	{ "read", do_read, 0 },
	{ "store to mapping", do_mmap, 0 },
	{ "chmod", do_chmod, ATTRIB },
	{ "chown", do_chown, ATTRIB },
	{ "set times", do_times, ATTRIB },
	{ "link", do_link, ATTRIB },
	{ "unlink the link", do_unlink_g, ATTRIB },
	{ "rename", do_rename, RENAME },
	{ "rename back", do_rename_back, RENAME },
	{ "rename out", do_rename_out, RENAME },
	{ "rename in", do_rename_in, RENAME },
	{ "mkdir beside", do_mkdir, 0 },
	{ "unlink", do_unlink, ATTRIB | REMOVE },
	{ "create another", do_creat, 0 },
	{ "write another", do_write, 0 },
	{}
};

static const struct deed dir_deeds[] = {
	{ "write", do_write, 0 },
	{ "chmod a file", do_chmod, 0 },
	{ "link", do_link, CREATE },
	{ "link out", do_link_out, 0 },
	{ "unlink elsewhere", do_unlink_out, 0 },
	{ "unlink the link", do_unlink_g, REMOVE },
	{ "rename", do_rename, RENAME },
	{ "rename back", do_rename_back, RENAME },
	{ "rename out", do_rename_out, RENAME },
	{ "rename in", do_rename_in, RENAME },
	{ "unlink", do_unlink, REMOVE },
	{ "creat", do_creat, CREATE },
	{ "mkdir", do_mkdir, CREATE },
	{ "creat below", do_creat_below, 0 },
	{ "unlink below", do_unlink_below, 0 },
	{ "rmdir", do_rmdir, REMOVE },
	{ "symlink", do_symlink, CREATE },
	{ "unlink a symlink", do_unlink_s, REMOVE },
	{ "mkfifo", do_mkfifo, CREATE },
	{ "unlink a fifo", do_unlink_p, REMOVE },
	{ "chmod", do_chmod_dir, ATTRIB },
	{ "rename the directory", do_rename_dir, RENAME },
	{ "and back", do_rename_dir_back, RENAME },
	{}
};

/* With all bits of interest, each bit alone, and all bits but one */
static void do_deeds(const struct deed *deeds, const char *path,
		     uint32_t interest)
{
	int fd, dir = open_dir("d");
	unsigned int failures;
	struct queue q;

	touch("d/f");
	open_queue(&q, 8);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	MUST_EQ(add_inode(q.fd, fd, interest, 0, 9), 0);
	for (; deeds->name; deeds++) {
		failures = CU_get_number_of_failures();
		CHECK_EQ(deeds->fn(), 0);
		check_only(&q, fd, deeds->bits & interest, 9);
		if (CU_get_number_of_failures() != failures)
			note("%s, interest %#x", deeds->name, interest);
	}
	close(fd);
	close(dir);
	close_queue(&q);
	unlink("d/f");
	rmdir("d/sub");
}

static void each_interest(const struct deed *deeds, const char *path)
{
	uint32_t bit;

	enter_tmpfs();
	do_deeds(deeds, path, ALL);
	for (bit = 1; bit < ALL; bit <<= 1) {
		do_deeds(deeds, path, bit);
		do_deeds(deeds, path, ALL & ~bit);
	}
}

static void deeds_to_a_file(void)
{
	each_interest(file_deeds, "d/f");
}

static void deeds_in_a_directory(void)
{
	each_interest(dir_deeds, "d");
}

static const struct test_case cases[] = {
	TEST(deeds_to_a_file),
	TEST(deeds_in_a_directory),
	{}
};

const struct test_suite inode_deeds_suite = {
	.name = "inode_deeds", .cases = cases,
};
