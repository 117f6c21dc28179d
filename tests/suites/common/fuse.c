// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "fuse.h"
#include "helpers.h"

#define FILE_NODE	2

void mount_fuse(struct daemon *d)
{
	char options[80];

	strcpy(d->dir, "/tmp/kevent-fuse-XXXXXX");
	MUST(mkdtemp(d->dir));
	d->dev = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	MUST(d->dev >= 0);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", d->dev);
	MUST_EQ(mount("kevent-tests", d->dir, "fuse", 0, options), 0);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, d->sock),
		0);
}

void unmount_fuse(struct daemon *d)
{
	close(d->dev);
	CHECK_EQ(umount2(d->dir, MNT_DETACH), 0);
	CHECK_EQ(rmdir(d->dir), 0);
}

int open_fuse_file(const struct daemon *d)
{
	char path[48];

	snprintf(path, sizeof(path), "%s/file", d->dir);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* One that is killed waits for no answer: ENOENT. */
static void reply(struct daemon *d, uint64_t unique, int error,
		  const void *out, size_t size)
{
	char buf[256];
	struct fuse_out_header *hdr = (struct fuse_out_header *)buf;

	*hdr = (struct fuse_out_header){
		.len = sizeof(*hdr) + size,
		.error = error,
		.unique = unique,
	};
	if (size)
		memcpy(buf + sizeof(*hdr), out, size);
	if (write(d->dev, buf, hdr->len) != (ssize_t)hdr->len)
		MUST_EQ(errno, ENOENT);
}

static void fill_attr(struct fuse_attr *attr, uint64_t node)
{
	*attr = (struct fuse_attr){
		.ino = node,
		.mode = node == FILE_NODE ? S_IFREG | 0600 : S_IFDIR | 0700,
		.nlink = 1,
	};
}

static void answer_request(struct daemon *d, const struct fuse_in_header *in)
{
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_write = 4096,
	};
	struct fuse_entry_out entry = {
		.nodeid = FILE_NODE, .entry_valid = 3600, .attr_valid = 3600,
	};
	struct fuse_attr_out attr = { .attr_valid = 3600 };
	struct fuse_open_out opened = {
		.open_flags = d->flushes ? 0 : FOPEN_NOFLUSH,
	};

	switch (in->opcode) {
	case FUSE_INIT:
		reply(d, in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		fill_attr(&entry.attr, FILE_NODE);
		reply(d, in->unique, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		fill_attr(&attr.attr, in->nodeid);
		reply(d, in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		reply(d, in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		reply(d, in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(d, in->unique, -ENOSYS, NULL, 0);
	}
}

void await_request(struct daemon *d)
{
	struct pollfd pfd = { .fd = d->dev, .events = POLLIN };

	MUST_EQ(poll(&pfd, 1, PATIENCE_MS * slowness), 1);
	MUST(pfd.revents & POLLIN);
}

uint32_t serve_one(struct daemon *d)
{
	static char buf[FUSE_MIN_READ_BUFFER + 4096];
	const struct fuse_in_header *in = (struct fuse_in_header *)buf;
	const struct fuse_poll_in *look = (struct fuse_poll_in *)(in + 1);

	if (read(d->dev, buf, sizeof(buf)) < (ssize_t)sizeof(*in)) {
		MUST(errno == EAGAIN || errno == ENOENT || errno == EINTR);
		return 0;
	}
	if (in->opcode == FUSE_POLL && !d->no_poll) {
		d->poll_unique = in->unique;
		d->poll_kh = look->kh;
	} else {
		answer_request(d, in);
	}
	return in->opcode;
}

void serve_until(struct daemon *d, uint32_t opcode)
{
	do
		await_request(d);
	while (serve_one(d) != opcode);
}

void answer_poll(struct daemon *d, uint32_t revents)
{
	struct fuse_poll_out out = { .revents = revents };

	reply(d, d->poll_unique, 0, &out, sizeof(out));
}

void wake_pollers(struct daemon *d)
{
	struct fuse_notify_poll_wakeup_out wake = { .kh = d->poll_kh };

	reply(d, 0, FUSE_NOTIFY_POLL, &wake, sizeof(wake));
}
