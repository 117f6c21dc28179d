// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_INODE: changes of files and directories
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "helpers.h"
#include "inode.h"

#define FILES	1000

void touch(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	MUST(fd >= 0);
	close(fd);
}

int open_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	MUST(fd >= 0);
	return fd;
}

int open_dir(const char *path)
{
	int fd;

	mkdir(path, 0700);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(fd >= 0);
	return fd;
}

int add_inode(int kq, int fd, uint32_t event, uint32_t flags, uint64_t user)
{
	struct ukevent ev;

	kevent_set_inode(&ev, fd, event, flags, user);
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev);
}

static int modify_inode(int kq, int fd, uint32_t event, uint32_t flags,
			uint64_t user)
{
	struct ukevent ev;

	kevent_set_inode(&ev, fd, event, flags, user);
	return kevent_ctl_one(kq, KEVENT_CTL_MODIFY, &ev);
}

void write_path(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	MUST(fd >= 0);
	put_byte(fd);
	close(fd);
}

void check_event(struct queue *q, int fd, uint32_t bits, uint64_t user)
{
	struct ukevent ev;

	if (!CHECK_EQ(next_event(q, &ev, 0), 1))
		return;
	CHECK_EQ(ev.type, KEVENT_INODE);
	CHECK_EQ(ev.id.raw[0], fd);
	CHECK_EQ(ev.id.raw[1], 0);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
	CHECK_EQ(ev.ret_data[0], bits);
	CHECK_EQ(ev.ret_data[1], 0);
	CHECK_EQ(ev.ptr, user);
}

void check_only(struct queue *q, int fd, uint32_t bits, uint64_t user)
{
	if (bits)
		check_event(q, fd, bits, user);
	CHECK_NO_EVENT(q);
}

static void changes_are_merged(struct queue *q)
{
	unsigned int i;
	int fd;

	enter_tmpfs();
	fd = open_file("f");
	MUST_EQ(add_inode(q->fd, fd, ALL, 0, 3), 0);
	for (i = 0; i < 5; i++)
		put_byte(fd);
	MUST_EQ(fchmod(fd, 0600), 0);
	MUST_EQ(rename("f", "g"), 0);
	check_only(q, fd, MODIFY | ATTRIB | RENAME, 3);
	put_byte(fd);
	check_only(q, fd, MODIFY, 3);
	close(fd);
}

/* An unread entry covers later changes that it already has, but not others. */
static void unread_entry_is_not_repeated(void)
{
	struct queue q;
	int fd;

	enter_tmpfs();
	open_queue(&q, 8);
	fd = open_file("f");
	MUST_EQ(add_inode(q.fd, fd, ALL, 0, 3), 0);
	put_byte(fd);
	MUST_EQ(wait_ring(&q, 8, 0), 1);
	put_byte(fd);
	MUST_EQ(wait_ring(&q, 8, 0), 0);
	MUST_EQ(fchmod(fd, 0600), 0);
	MUST_EQ(wait_ring(&q, 8, 0), 1);
	check_event(&q, fd, MODIFY, 3);
	check_only(&q, fd, ATTRIB, 3);
	close_queue(&q);
}

static void full_ring(void)
{
	int fd[5];
	struct queue q;
	unsigned int i, counts[5] = {};

	enter_tmpfs();
	open_queue(&q, 2);
	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		char name[2] = { 'a' + i };

		fd[i] = open_file(name);
		MUST_EQ(add_inode(q.fd, fd[i], MODIFY, 0, i), 0);
		put_byte(fd[i]);
	}
	MUST_EQ(wait_ring(&q, 2, 0), 2);
	CHECK_EQ(drain(&q, counts, 5), 5);
	for (i = 0; i < ARRAY_SIZE(fd); i++)
		CHECK_EQ(counts[i], 1);
	close_queue(&q);
}

/* Removal of a file that is open */

static void nameless_file_goes_on(void)
{
	struct queue q;
	int fd;

	enter_tmpfs();
	open_queue(&q, 8);
	fd = open_file("f");
	MUST_EQ(add_inode(q.fd, fd, ALL, 0, 3), 0);
	MUST_EQ(unlink("f"), 0);
	check_only(&q, fd, ATTRIB | REMOVE, 3);
	put_byte(fd);
	check_only(&q, fd, MODIFY, 3);
	MUST_EQ(fchmod(fd, 0640), 0);
	check_only(&q, fd, ATTRIB, 3);
	close_queue(&q);
}

static void file_can_lose_its_name_again(void)
{
	struct ukevent ev;
	char path[40];
	struct queue q;
	int fd;

	enter_tmpfs();
	open_queue(&q, 8);
	fd = open(".", O_TMPFILE | O_RDWR, 0600);
	MUST(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	MUST_EQ(add_inode(q.fd, fd, REMOVE, 0, 3), 0);
	check_only(&q, fd, REMOVE, 3);
	MUST_EQ(linkat(AT_FDCWD, path, AT_FDCWD, "f", AT_SYMLINK_FOLLOW), 0);
	CHECK_NO_EVENT(&q);
	MUST_EQ(unlink("f"), 0);
	MUST_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(ev.ret_data[0], REMOVE);
	close_queue(&q);
}

/* The watch has said that there is no name, and does not ask while there is one again. */
static void name_lost_again_while_nobody_asks(void)
{
	char path[40];
	struct queue q;
	int fd;

	enter_tmpfs();
	open_queue(&q, 8);
	fd = open(".", O_TMPFILE | O_RDWR, 0600);
	MUST(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	MUST_EQ(add_inode(q.fd, fd, REMOVE | ATTRIB, 0, 3), 0);
	check_only(&q, fd, REMOVE, 3);
	MUST_EQ(modify_inode(q.fd, fd, ATTRIB, 0, 4), 0);
	CHECK_NO_EVENT(&q);
	MUST_EQ(linkat(AT_FDCWD, path, AT_FDCWD, "f", AT_SYMLINK_FOLLOW), 0);
	check_only(&q, fd, ATTRIB, 4);
	MUST_EQ(unlink("f"), 0);
	check_only(&q, fd, ATTRIB, 4);
	MUST_EQ(modify_inode(q.fd, fd, REMOVE, 0, 5), 0);
	check_only(&q, fd, REMOVE, 5);
	MUST_EQ(modify_inode(q.fd, fd, REMOVE | ATTRIB, 0, 6), 0);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static int unlinks(void *path)
{
	return unlink(path);
}

/* Of another process, so that the event waits in the kernel. */
static void name_lost_unreported_is_reported_later(void)
{
	struct queue q;
	int fd;

	enter_tmpfs();
	open_queue(&q, 8);
	touch("f");
	fd = open("f", O_RDWR);
	MUST(fd >= 0);
	MUST_EQ(add_inode(q.fd, fd, REMOVE, 0, 3), 0);
	MUST_EQ(join_child(start_child(unlinks, "f"), PATIENCE_MS), 0);
	MUST_EQ(modify_inode(q.fd, fd, KEVENT_INODE_MODIFY, 0, 4), 0);
	CHECK_NO_EVENT(&q);
	MUST_EQ(modify_inode(q.fd, fd, REMOVE, 0, 5), 0);
	check_only(&q, fd, REMOVE, 5);
	close_queue(&q);
}

static void file_replaced_by_rename_is_removed(void)
{
	struct queue q;
	int fd, dir;

	enter_tmpfs();
	open_queue(&q, 8);
	dir = open_dir("d");
	fd = open_file("d/f");
	touch("new");
	MUST_EQ(add_inode(q.fd, fd, ALL, 0, 3), 0);
	MUST_EQ(add_inode(q.fd, dir, ALL, 0, 4), 0);
	MUST_EQ(rename("new", "d/f"), 0);
	check_event(&q, dir, RENAME, 4);
	check_only(&q, fd, ATTRIB | REMOVE, 3);
	close_queue(&q);
}

static void directory_replaced_by_rename_is_removed(void)
{
	struct queue q;
	int dir;

	enter_tmpfs();
	open_queue(&q, 8);
	dir = open_dir("d");
	MUST_EQ(mkdir("new", 0700), 0);
	MUST_EQ(add_inode(q.fd, dir, ALL, 0, 4), 0);
	MUST_EQ(rename("new", "d"), 0);
	check_only(&q, dir, ATTRIB | REMOVE, 4);
	close_queue(&q);
}

static void rmdir_is_reported_for_the_parent(void)
{
	struct queue q;
	int dir, top;

	enter_tmpfs();
	open_queue(&q, 8);
	dir = open_dir("d");
	top = open_dir(".");
	MUST_EQ(add_inode(q.fd, top, ALL, 0, 3), 0);
	MUST_EQ(add_inode(q.fd, dir, ALL, 0, 4), 0);
	MUST_EQ(rmdir("d"), 0);
	check_only(&q, top, REMOVE, 3);
	close_queue(&q);
}

/*
 * The directory entry of a name that nobody has open is freed, its inode is
 * not.
 */
static void last_link_of_another_name(void)
{
	struct queue q;
	int fd;

	enter_tmpfs();
	open_queue(&q, 8);
	fd = open_file("a");
	MUST_EQ(link("a", "b"), 0);
	MUST_EQ(add_inode(q.fd, fd, ALL, 0, 3), 0);
	MUST_EQ(unlink("a"), 0);
	check_only(&q, fd, ATTRIB, 3);
	MUST_EQ(unlink("b"), 0);
	check_only(&q, fd, ATTRIB | REMOVE, 3);
	put_byte(fd);
	check_only(&q, fd, MODIFY, 3);
	close_queue(&q);
}

static void file_without_a_name_is_removed_at_add(struct queue *q)
{
	struct ukevent ev;
	int fd;

	enter_tmpfs();
	fd = open_file("f");
	MUST_EQ(unlink("f"), 0);
	kevent_set_inode(&ev, fd, REMOVE | MODIFY, HAND_BACK, 3);
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), 1);
	CHECK_EQ(ev.ret_data[0], REMOVE);
	CHECK_NO_EVENT(q);
	put_byte(fd);
	check_only(q, fd, MODIFY, 3);
	CHECK_EQ(remove_file(q->fd, KEVENT_INODE, fd), 0);
	CHECK_EQ(add_inode(q->fd, fd, REMOVE, 0, 5), 0);
	check_only(q, fd, REMOVE, 5);
	CHECK_EQ(remove_file(q->fd, KEVENT_INODE, fd), 0);
	CHECK_EQ(add_inode(q->fd, fd, MODIFY, 0, 5), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_inode(q->fd, fd, REMOVE, 0, 8), 0);
	check_only(q, fd, REMOVE, 8);
	CHECK_EQ(modify_inode(q->fd, fd, REMOVE | MODIFY, 0, 9), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(remove_file(q->fd, KEVENT_INODE, fd), 0);
	CHECK_EQ(add_inode(q->fd, fd, REMOVE, KEVENT_REQ_DISABLED, 6), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_inode(q->fd, fd, REMOVE, 0, 7), 0);
	check_only(q, fd, REMOVE, 7);
	close(fd);
}

/* The entry is readable but not writable: the event is not lost. */
static void event_that_cannot_be_handed_back_is_queued(void)
{
	struct ukevent *ev;
	struct queue q;
	int fd;

	enter_tmpfs();
	open_queue(&q, 8);
	fd = open_file("f");
	MUST_EQ(unlink("f"), 0);
	ev = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(ev != MAP_FAILED);
	kevent_set_inode(ev, fd, REMOVE, HAND_BACK, 3);
	MUST_EQ(mprotect(ev, 4096, PROT_READ), 0);
	kevent_ctl(q.fd, KEVENT_CTL_ADD, 1, ev);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 1);
	check_only(&q, fd, REMOVE, 3);
	close_queue(&q);
}

struct adder {
	struct actor	actor;
	struct ukevent	*ev;
	int		kq;
};

static long adds(void *arg)
{
	struct adder *a = arg;

	return kevent_ctl(a->kq, KEVENT_CTL_ADD, 1, a->ev);
}

/* ADD has found that the file has no name, and stops in a window. */
static void check_modified_in(const char *window, uint32_t flags, int prot)
{
	struct adder a;
	struct queue q;
	int fd;

	open_queue(&q, 8);
	fd = open_file("f");
	MUST_EQ(unlink("f"), 0);
	a.kq = q.fd;
	a.ev = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(a.ev != MAP_FAILED);
	kevent_set_inode(a.ev, fd, REMOVE, flags, 3);
	MUST_EQ(mprotect(a.ev, 4096, prot), 0);
	CHECK(start_in_window(&a.actor, window, adds, &a));
	CHECK_EQ(modify_inode(q.fd, fd, MODIFY, flags, 4), 0);
	window_release();
	join_actor(&a.actor, PATIENCE_MS);
	CHECK_EQ(a.actor.ret, 0);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(modify_inode(q.fd, fd, REMOVE, 0, 5), 0);
	check_only(&q, fd, REMOVE, 5);
	close_queue(&q);
	close(fd);
}

/* Nobody gets what MODIFY does not want, and it is not lost for the next one. */
static void modify_beside_an_add_decides(void)
{
	enter_tmpfs();
	check_modified_in("attached", 0, PROT_READ | PROT_WRITE);
	check_modified_in("attached", HAND_BACK, PROT_READ | PROT_WRITE);
	check_modified_in("handed", HAND_BACK, PROT_READ);
}

/* Modes */

static void oneshot_reports_one_change(struct queue *q)
{
	int fd;

	enter_tmpfs();
	fd = open_file("f");
	MUST_EQ(add_inode(q->fd, fd, ALL, KEVENT_REQ_ONESHOT, 3), 0);
	put_byte(fd);
	check_only(q, fd, MODIFY, 3);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	put_byte(fd);
	CHECK_NO_EVENT(q);
	CHECK_EQ(remove_file(q->fd, KEVENT_INODE, fd), -ENOENT);
	close(fd);
}

static void dispatch_keeps_changes_until_it_is_armed(struct queue *q)
{
	int fd;

	enter_tmpfs();
	fd = open_file("f");
	MUST_EQ(add_inode(q->fd, fd, ALL, KEVENT_REQ_DISPATCH, 3), 0);
	put_byte(fd);
	check_only(q, fd, MODIFY, 3);
	put_byte(fd);
	MUST_EQ(fchmod(fd, 0600), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_inode(q->fd, fd, ALL, KEVENT_REQ_DISPATCH, 4), 0);
	check_only(q, fd, MODIFY | ATTRIB, 4);
	CHECK_EQ(modify_inode(q->fd, fd, ALL, KEVENT_REQ_DISPATCH, 5), 0);
	CHECK_NO_EVENT(q);
	put_byte(fd);
	check_only(q, fd, MODIFY, 5);
	close(fd);
}

static void disabled_keeps_changes(struct queue *q)
{
	int fd;

	enter_tmpfs();
	fd = open_file("f");
	MUST_EQ(add_inode(q->fd, fd, ALL, KEVENT_REQ_DISABLED, 3), 0);
	put_byte(fd);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_inode(q->fd, fd, ALL, 0, 4), 0);
	check_only(q, fd, MODIFY, 4);
	put_byte(fd);
	CHECK_EQ(modify_inode(q->fd, fd, ALL, KEVENT_REQ_DISABLED, 5), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_inode(q->fd, fd, ALL, 0, 6), 0);
	check_only(q, fd, MODIFY, 6);
	close(fd);
}

static void modify_changes_the_interest(struct queue *q)
{
	int fd;

	enter_tmpfs();
	fd = open_file("f");
	MUST_EQ(add_inode(q->fd, fd, ATTRIB, 0, 3), 0);
	put_byte(fd);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_inode(q->fd, fd, MODIFY | ATTRIB, 0, 4), 0);
	CHECK_NO_EVENT(q);
	put_byte(fd);
	MUST_EQ(fchmod(fd, 0600), 0);
	CHECK_EQ(modify_inode(q->fd, fd, ATTRIB, 0, 5), 0);
	check_only(q, fd, ATTRIB, 5);
	MUST_EQ(fchmod(fd, 0600), 0);
	CHECK_EQ(modify_inode(q->fd, fd, MODIFY, 0, 6), 0);
	CHECK_NO_EVENT(q);
	put_byte(fd);
	check_only(q, fd, MODIFY, 6);
	close(fd);
}

static void ready_reports_the_bits_given(struct queue *q)
{
	struct ukevent ev;
	int fd;

	enter_tmpfs();
	fd = open_file("f");
	MUST_EQ(add_inode(q->fd, fd, ALL, 0, 3), 0);
	kevent_set_inode(&ev, fd, RENAME, 0, 0);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_READY, &ev), 1);
	check_only(q, fd, RENAME, 3);
	close(fd);
}

static void change_wakes_a_waiter(void)
{
	struct waiter w;
	struct queue q;
	int fd;

	enter_tmpfs();
	open_queue(&q, 0);
	fd = open_file("f");
	MUST_EQ(add_inode(q.fd, fd, ALL, 0, 3), 0);
	start_waiter(&w, &q, 4);
	put_byte(fd);
	MUST_EQ(join_waiter(&w), 1);
	CHECK_EQ(w.ev[0].ret_data[0], MODIFY);
	close_queue(&q);
}

/* Descriptors */

static void watch_goes_with_its_descriptor(void)
{
	struct queue q;
	int fd, dup_fd;

	enter_tmpfs();
	open_queue(&q, 8);
	fd = open_file("f");
	dup_fd = dup(fd);
	MUST_EQ(add_inode(q.fd, fd, ALL, 0, 3), 0);
	MUST_EQ(add_inode(q.fd, dup_fd, ALL, 0, 4), 0);
	put_byte(fd);
	/* The newest watch reports first. */
	check_event(&q, dup_fd, MODIFY, 4);
	check_only(&q, fd, MODIFY, 3);
	put_byte(fd);
	close(fd);
	check_only(&q, dup_fd, MODIFY, 4);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 1);
	close(dup_fd);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	write_path("f");
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static int child_writes(void *arg)
{
	int fd = *(int *)arg;

	return write(fd, "", 1) != 1 || close(fd) || unlink("f");
}

static void child_writes_and_closes(void)
{
	struct queue q;
	int fd;

	enter_tmpfs();
	open_queue(&q, 8);
	fd = open_file("f");
	MUST_EQ(add_inode(q.fd, fd, ALL, 0, 3), 0);
	MUST_EQ(join_child(start_child(child_writes, &fd), PATIENCE_MS), 0);
	check_only(&q, fd, MODIFY | ATTRIB | REMOVE, 3);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 1);
	close_queue(&q);
}

static void two_queues_and_two_descriptions(void)
{
	struct queue q[2];
	int fd[2], i;

	enter_tmpfs();
	for (i = 0; i < 2; i++) {
		open_queue(&q[i], 8);
		fd[i] = open_file("f");
	}
	MUST_EQ(add_inode(q[0].fd, fd[0], ALL, 0, 3), 0);
	MUST_EQ(add_inode(q[1].fd, fd[0], MODIFY, 0, 4), 0);
	MUST_EQ(add_inode(q[1].fd, fd[1], ALL, 0, 5), 0);
	put_byte(fd[1]);
	check_only(&q[0], fd[0], MODIFY, 3);
	check_event(&q[1], fd[1], MODIFY, 5);
	check_only(&q[1], fd[0], MODIFY, 4);
	close_queue(&q[0]);
	put_byte(fd[1]);
	check_event(&q[1], fd[1], MODIFY, 5);
	check_only(&q[1], fd[0], MODIFY, 4);
	close_queue(&q[1]);
}

/*
 * An unmounted file system exists as long as the descriptor, and so does the
 * watch.
 */
static void lazy_unmount(void)
{
	struct queue q;
	int fd;

	enter_tmpfs();
	open_queue(&q, 8);
	MUST_EQ(mkdir("m", 0700), 0);
	MUST_EQ(mount("none", "m", "tmpfs", 0, NULL), 0);
	fd = open_file("m/f");
	MUST_EQ(add_inode(q.fd, fd, ALL, 0, 3), 0);
	CHECK_EQ(umount2("m", 0), -1);
	MUST_EQ(umount2("m", MNT_DETACH), 0);
	CHECK_NO_EVENT(&q);
	put_byte(fd);
	check_only(&q, fd, MODIFY, 3);
	close(fd);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
}

static void thousand_files(void)
{
	static unsigned int counts[FILES];
	static int fd[FILES];
	unsigned int i;
	struct queue q;
	char name[20];

	enter_tmpfs();
	open_fds(FILES + 100);
	open_queue(&q, 64);
	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "%u", i);
		fd[i] = open_file(name);
		MUST_EQ(add_inode(q.fd, fd[i], MODIFY, 0, i), 0);
	}
	for (i = 0; i < 2 * FILES; i++)
		put_byte(fd[i % FILES]);
	CHECK_EQ(drain(&q, counts, FILES), FILES);
	for (i = 0; i < FILES; i++)
		CHECK_EQ(counts[i], 1);
	for (i = 0; i < FILES; i += 2)
		close(fd[i]);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), FILES / 2);
	close_queue(&q);
}

/* Errors */

static int add_flagged(int kq, int fd, uint32_t event, uint32_t high)
{
	struct ukevent ev;

	kevent_set_inode(&ev, fd, event, 0, 0);
	ev.id.raw[1] = high;
	return kevent_ctl_one(kq, KEVENT_CTL_ADD, &ev);
}

static void malformed_requests(void)
{
	struct queue q;
	uint32_t bit;
	int fd;

	enter_tmpfs();
	open_queue(&q, 0);
	fd = open_file("f");
	CHECK_EQ(add_inode(q.fd, fd, 0, 0, 0), -EINVAL);
	for (bit = ALL + 1; bit; bit <<= 1)
		CHECK_EQ(add_inode(q.fd, fd, MODIFY | bit, 0, 0), -EINVAL);
	CHECK_EQ(add_flagged(q.fd, fd, MODIFY, 1), -EINVAL);
	CHECK_EQ(add_inode(q.fd, fd, MODIFY, KEVENT_REQ_KEEP_EACH, 0),
		 -EINVAL);
	CHECK_EQ(remove_file(q.fd, KEVENT_INODE, fd), -ENOENT);
	CHECK_EQ(modify_inode(q.fd, fd, MODIFY, 0, 0), -ENOENT);
	CHECK_EQ(add_inode(q.fd, fd, MODIFY, 0, 0), 0);
	CHECK_EQ(add_inode(q.fd, fd, MODIFY, 0, 0), -EEXIST);
	CHECK_EQ(modify_inode(q.fd, fd, 0, 0, 0), -EINVAL);
	CHECK_EQ(modify_inode(q.fd, fd, ALL + 1, 0, 0), -EINVAL);
	close_queue(&q);
}

static void files_that_cannot_be_watched(void)
{
	int fd[2], sock[2];
	struct queue q;

	enter_tmpfs();
	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
	CHECK_EQ(add_inode(q.fd, -1, MODIFY, 0, 0), -EBADF);
	CHECK_EQ(add_inode(q.fd, open("/", O_PATH), MODIFY, 0, 0), -EBADF);
	CHECK_EQ(add_inode(q.fd, q.fd, MODIFY, 0, 0), -EINVAL);
	CHECK_EQ(add_inode(q.fd, epoll_create1(0), MODIFY, 0, 0), -EINVAL);
	CHECK_EQ(add_inode(q.fd, fd[0], MODIFY, 0, 0), -EINVAL);
	CHECK_EQ(add_inode(q.fd, sock[0], MODIFY, 0, 0), -EINVAL);
	CHECK_EQ(add_inode(q.fd, eventfd(0, 0), MODIFY, 0, 0), -EINVAL);
	touch("f");
	CHECK_EQ(add_inode(q.fd, open("f", O_WRONLY), MODIFY, 0, 0), -EACCES);
	CHECK_EQ(add_inode(q.fd, open("f", O_RDONLY), MODIFY, 0, 0), 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 1);
	close_queue(&q);
}

static void watches_of_a_file_are_limited(void)
{
	const int max = 128;
	int fd, i, err = 0;

	enter_tmpfs();
	open_fds(max + 100);
	fd = open_file("f");
	for (i = 0; i < max + 1 && !err; i++)
		err = add_inode(kevent_init(NULL, 0, 0), fd, MODIFY, 0, 0);
	CHECK_EQ(err, -ENOSPC);
	CHECK_EQ(i, max + 1);
}

static const struct test_case cases[] = {
	TEST_EACH(changes_are_merged),
	TEST(unread_entry_is_not_repeated),
	TEST(full_ring),
	TEST(nameless_file_goes_on),
	TEST(file_can_lose_its_name_again),
	TEST(name_lost_again_while_nobody_asks),
	TEST(name_lost_unreported_is_reported_later),
	TEST(file_replaced_by_rename_is_removed),
	TEST(directory_replaced_by_rename_is_removed),
	TEST(rmdir_is_reported_for_the_parent),
	TEST(last_link_of_another_name),
	TEST_EACH(file_without_a_name_is_removed_at_add),
	TEST(event_that_cannot_be_handed_back_is_queued),
	TEST(modify_beside_an_add_decides),
	TEST_EACH(oneshot_reports_one_change),
	TEST_EACH(dispatch_keeps_changes_until_it_is_armed),
	TEST_EACH(disabled_keeps_changes),
	TEST_EACH(modify_changes_the_interest),
	TEST_EACH(ready_reports_the_bits_given),
	TEST(change_wakes_a_waiter),
	TEST(watch_goes_with_its_descriptor),
	TEST(child_writes_and_closes),
	TEST(two_queues_and_two_descriptions),
	TEST(lazy_unmount),
	TEST(thousand_files),
	TEST(malformed_requests),
	TEST(files_that_cannot_be_watched),
	TEST(watches_of_a_file_are_limited),
	{}
};

const struct test_suite inode_suite = { .name = "inode", .cases = cases };
