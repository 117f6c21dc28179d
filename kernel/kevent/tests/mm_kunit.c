// SPDX-License-Identifier: GPL-2.0
/*
 * A wake-up in an interrupt, while the processor uses another address space than
 * that of the task that is interrupted
 */

#include <kunit/test.h>
#include <linux/kthread.h>
#include <linux/mman.h>
#include <linux/mmu_context.h>
#include <linux/preempt.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>

#include "../core/source.h"

#define SIZE	8

/* A queue with a ring in current->mm, and a watch that hits */
static struct kevent *watch_with_ring(struct kunit *test,
				      struct kevent_ring __user *user)
{
	struct kevent_queue *q = kevent_queue_alloc();
	struct ukevent uk = {
		.type		= KEVENT_USER,
		.event		= 1,
		.req_flags	= KEVENT_REQ_ET,
	};

	KUNIT_ASSERT_NOT_NULL(test, q);
	KUNIT_ASSERT_EQ(test, kring_init(&q->ring, user, SIZE), 0);
	q->home.user = user;
	KUNIT_ASSERT_NULL(test, kevent_add(q, &kevent_user_ops, &uk,
					   EMPTY_FD));
	guard(rcu)();
	return kevent_key_find(q, KEVENT_USER, 0);
}

static void use_mm(struct mm_struct *mm)
{
	kthread_unuse_mm(current->mm);
	kthread_use_mm(mm);
}

/* An address space that has memory at the same place */
static struct mm_struct *other_mm(struct kunit *test,
				  struct kevent_ring __user *user)
{
	struct mm_struct *mm = mm_alloc(), *home = current->mm;
	unsigned long at = (unsigned long)user, got;

	KUNIT_ASSERT_NOT_NULL(test, mm);
	mm->task_size = TASK_SIZE;
	arch_pick_mmap_layout(mm, &current->signal->rlim[RLIMIT_STACK]);
	use_mm(mm);
	got = vm_mmap(NULL, at, PAGE_SIZE, PROT_READ | PROT_WRITE,
		      MAP_FIXED | MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_EXPECT_EQ(test, clear_user(user, PAGE_SIZE), 0);
	use_mm(home);
	KUNIT_ASSERT_EQ(test, got, at);
	return mm;
}

static u64 kidx_in(struct kunit *test, struct mm_struct *mm,
		   struct kevent_ring __user *user)
{
	struct mm_struct *home = current->mm;
	u64 kidx = ~0ULL;

	use_mm(mm);
	KUNIT_EXPECT_EQ(test, get_user(kidx, &user->ring_kidx), 0);
	use_mm(home);
	return kidx;
}

/* As in an interrupt, with @mm in use where it is not current->mm */
static void interrupt(struct kevent *ke, struct mm_struct *mm)
{
	struct mm_struct *home = current->mm;
	unsigned long flags;

	local_irq_save(flags);
	switch_mm_irqs_off(home, mm, current);
	preempt_count_add(HARDIRQ_OFFSET);
	kevent_ready_amount(ke, 1, 0);
	preempt_count_sub(HARDIRQ_OFFSET);
	switch_mm_irqs_off(mm, home, current);
	local_irq_restore(flags);
}

/* Firmware is called in an address space of its own, with interrupts on. */
static void interrupt_in_foreign_mm_stores_nothing(struct kunit *test)
{
	struct kevent_ring __user *user = (void __user *)
		kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
			      MAP_ANONYMOUS | MAP_PRIVATE, 0);
	struct kevent *ke = watch_with_ring(test, user);
	struct mm_struct *other = other_mm(test, user);
	struct kevent_queue *q = ke->queue;

	interrupt(ke, current->mm);
	KUNIT_EXPECT_EQ(test, kidx_in(test, current->mm, user), 1);
	/* Read, so that the next one is worth an entry */
	KUNIT_EXPECT_EQ(test, put_user(1, &user->ring_uidx), 0);
	interrupt(ke, other);
	KUNIT_EXPECT_EQ(test, kidx_in(test, other, user), 0);
	KUNIT_EXPECT_EQ(test, kidx_in(test, current->mm, user), 1);
	KUNIT_EXPECT_EQ(test, q->nr_queued, 1);
	mmput(other);
	kevent_remove_all(q);
	kevent_queue_put(q);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(interrupt_in_foreign_mm_stores_nothing),
	{}
};

static struct kunit_suite suite = {
	.name		= "kevent-mm",
	.test_cases	= cases,
};

kunit_test_suite(suite);
