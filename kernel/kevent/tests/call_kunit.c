// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of chains of calls: which tasks may run them, and what a chain leaves behind
 */

#include <kunit/test.h>
#include <linux/cleanup.h>
#include <linux/irqflags.h>
#include <linux/kevent.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "../call/chain.h"
#include "../core/max_running.h"
#include "../core/quota.h"

/* Has a task with these flags, and not PF_KTHREAD as this one has it, chains? */
static bool allowed_with(unsigned int flags)
{
	bool ret;

	guard(irqsave)();
	current->flags &= ~PF_KTHREAD;
	current->flags |= flags;
	ret = kevent_call_allowed();
	current->flags &= ~flags;
	current->flags |= PF_KTHREAD;
	return ret;
}

/* No system call leads there: this is for whoever calls kevent from elsewhere. */
static void threads_without_user_mode_have_no_chains(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, allowed_with(0));
	KUNIT_EXPECT_FALSE(test, kevent_call_allowed());
	KUNIT_EXPECT_FALSE(test, allowed_with(PF_IO_WORKER));
	KUNIT_EXPECT_FALSE(test, allowed_with(PF_USER_WORKER));
}

#if defined(CONFIG_X86_64) || defined(CONFIG_ARM64)
/* Code that delays a task on its way to user mode sets TIF_NOTIFY_RESUME. */
static void what_user_mode_would_see_done_is_done(struct kunit *test)
{
	set_thread_flag(TIF_NOTIFY_RESUME);
	kevent_run_settle();
	KUNIT_EXPECT_FALSE(test, test_thread_flag(TIF_NOTIFY_RESUME));
}
#endif

#ifdef CONFIG_KEVENT_AIO
/* A call of a chain has oopsed. The thread exits, and makes room for others. */
static void threads_that_die_in_a_chain_serve_no_more(struct kunit *test)
{
	struct kevent_member *m = kzalloc(sizeof(*m), GFP_KERNEL);
	struct kevent_limit l = { .running = 1 };
	void *own = current->worker_private, *left;
	bool serves;

	KUNIT_ASSERT_NOT_NULL(test, m);
	kevent_limit_init(&l, true);
	refcount_inc(&l.refs);
	m->limit = &l;
	m->counted = true;
	scoped_guard(irqsave) {
		current->worker_private = m;
		current->flags |= PF_KEVENT_SERVER;
		kevent_leave_limit();
		serves = current->flags & PF_KEVENT_SERVER;
		left = current->worker_private;
		current->flags &= ~PF_KEVENT_SERVER;
		current->worker_private = own;
	}
	KUNIT_EXPECT_FALSE(test, serves);
	KUNIT_EXPECT_EQ(test, l.running, 0);
	KUNIT_EXPECT_NULL(test, left);
	KUNIT_EXPECT_EQ(test, refcount_read(&l.refs), 1);
}
#endif

static struct kunit_case cases[] = {
	KUNIT_CASE(threads_without_user_mode_have_no_chains),
#if defined(CONFIG_X86_64) || defined(CONFIG_ARM64)
	KUNIT_CASE(what_user_mode_would_see_done_is_done),
#endif
#ifdef CONFIG_KEVENT_AIO
	KUNIT_CASE(threads_that_die_in_a_chain_serve_no_more),
#endif
	{}
};

static struct kunit_suite suite = {
	.name		= "kevent-call",
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of chains of calls");
MODULE_LICENSE("GPL");
