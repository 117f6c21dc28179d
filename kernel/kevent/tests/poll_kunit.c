// SPDX-License-Identifier: GPL-2.0
/*
 * Files that look like something else
 */

#include <kunit/test.h>
#include <linux/anon_inodes.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/pipe_fs_i.h>

#include "../core/source.h"
#include "../sources/file_report.h"

static const struct file_operations no_pipe_fops = {
	.owner = THIS_MODULE,
};

/*
 * A FIFO as rpc_pipefs has them: its private_data is not a pipe. Read as a pipe,
 * this one has data.
 */
static struct file *open_no_pipe(struct kunit *test)
{
	static struct pipe_inode_info no_pipe = { .writers = 1, .head = 1 };
	struct file *file = anon_inode_create_getfile("[no pipe]",
						      &no_pipe_fops, &no_pipe,
						      O_RDONLY, NULL);

	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	file_inode(file)->i_mode = S_IFIFO | 0600;
	return file;
}

static void fifo_that_is_no_pipe_is_no_pipe(struct kunit *test)
{
	struct ukevent uk = { .type = KEVENT_PIPE, .event = KEVENT_SOCKET_RECV };
	struct file *file = open_no_pipe(test), *ends[2];

	KUNIT_EXPECT_EQ(test, kevent_pipe_ops.check(&uk, file), -EINVAL);
	KUNIT_EXPECT_EQ(test, kevent_poll_ops.check(&uk, file), 0);
	fput(file);
	KUNIT_ASSERT_EQ(test, create_pipe_files(ends, 0), 0);
	KUNIT_EXPECT_EQ(test, kevent_pipe_ops.check(&uk, ends[0]), 0);
	fput(ends[0]);
	fput(ends[1]);
}

/* Conditions of such a FIFO come from its ->poll(). */
static void fifo_that_is_no_pipe_is_polled(struct kunit *test)
{
	struct ukevent uk = { .type = KEVENT_POLL, .event = KEVENT_POLL_POLLIN };
	struct file *file = open_no_pipe(test);
	struct kevent_poll kp = {
		.kf.ke.type	= KEVENT_POLL,
		.kf.ke.event	= KEVENT_POLL_POLLIN,
		.kf.file	= file,
	};
	struct kevent *ke = &kp.kf.ke;

	kevent_poll_ops.modified(ke, &uk);
	KUNIT_EXPECT_TRUE(test, ke->keys & KEVENT_POLL_POLLIN);
	KUNIT_EXPECT_FALSE(test, ke->keys & BIT(15));
	KUNIT_EXPECT_LT(test, kevent_poll_ops.collect(ke, true), 0);
	fput(file);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(fifo_that_is_no_pipe_is_no_pipe),
	KUNIT_CASE(fifo_that_is_no_pipe_is_polled),
	{}
};

static struct kunit_suite suite = {
	.name		= "kevent-poll",
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of files watched by kevent");
MODULE_LICENSE("GPL");
