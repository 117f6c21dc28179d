// SPDX-License-Identifier: GPL-2.0
/*
 * The queue, driven by user marks: order, merging, modes, faults
 */

#include <kunit/test.h>
#include <linux/err.h>
#include <linux/mman.h>
#include <linux/uaccess.h>

#include "../core/source.h"
#include "../core/wait.h"
#include "../core/wake.h"
#include "../core/watch_memory.h"

#define SIZE	64

struct fixture {
	struct ukevent __user	*buf;
	struct kevent_queue	*q;
};

static int setup(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->buf = (void __user *)kunit_vm_mmap(test, NULL, 0,
					      SIZE * sizeof(struct ukevent),
					      PROT_READ | PROT_WRITE,
					      MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NOT_NULL(test, (void __force *)f->buf);
	f->q = kevent_queue_alloc();
	KUNIT_ASSERT_NOT_NULL(test, f->q);
	test->priv = f;
	return 0;
}

static bool has_watches(struct kevent_queue *q)
{
	u32 at = 0;

	guard(rcu)();
	return kevent_index_next(&q->watches, &at);
}

static void teardown(struct kunit *test)
{
	struct fixture *f = test->priv;

	kevent_remove_all(f->q);
	KUNIT_EXPECT_EQ(test, refcount_read(&f->q->refs), 1);
	KUNIT_EXPECT_FALSE(test, has_watches(f->q));
	KUNIT_EXPECT_EQ(test, f->q->nr_queued, 0);
	kevent_queue_put(f->q);
}

static struct ukevent request(u64 id, u32 flags)
{
	return (struct ukevent) {
		.id.raw_u64	= id,
		.type		= KEVENT_USER,
		.event		= 0xff,
		.req_flags	= flags,
		.ptr		= ~id,
	};
}

static void add(struct kunit *test, u64 id, u32 flags)
{
	struct fixture *f = test->priv;
	struct ukevent uk = request(id, flags);

	KUNIT_ASSERT_NULL(test, kevent_add(f->q, &kevent_user_ops, &uk,
					   EMPTY_FD));
}

static int mark(struct kunit *test, u64 id, u32 event)
{
	struct fixture *f = test->priv;
	struct ukevent uk = request(id, 0);

	uk.event = event;
	return kevent_mark(f->q, &kevent_user_ops, &uk, NULL);
}

/* Collect up to @max events into the buffer, from its start. */
static int collect(struct kunit *test, u32 max)
{
	struct fixture *f = test->priv;
	struct kring to = { .slots = f->buf, .size = max };

	return kevent_collect(f->q, &to, max, true);
}

static struct ukevent event(struct kunit *test, int i)
{
	struct fixture *f = test->priv;
	struct ukevent uk = {};

	KUNIT_ASSERT_EQ(test, copy_from_user(&uk, &f->buf[i], sizeof(uk)), 0);
	return uk;
}

static void events_come_in_the_order_of_marks(struct kunit *test)
{
	u64 id;

	for (id = 0; id < SIZE; id++)
		add(test, id, 0);
	for (id = 0; id < SIZE; id++)
		KUNIT_EXPECT_EQ(test, mark(test, id * 5 % SIZE, 0), 0);
	KUNIT_EXPECT_EQ(test, collect(test, SIZE), SIZE);
	for (id = 0; id < SIZE; id++)
		KUNIT_EXPECT_EQ(test, event(test, id).id.raw_u64,
				id * 5 % SIZE);
	KUNIT_EXPECT_EQ(test, collect(test, SIZE), 0);
}

static void marks_merge_until_delivered(struct kunit *test)
{
	add(test, 3, 0);
	KUNIT_EXPECT_EQ(test, mark(test, 3, 0x1), 0);
	KUNIT_EXPECT_EQ(test, mark(test, 3, 0x4), 0);
	KUNIT_EXPECT_EQ(test, mark(test, 3, 0x100), -EINVAL);
	KUNIT_EXPECT_EQ(test, mark(test, 4, 0x1), -ENOENT);
	KUNIT_EXPECT_EQ(test, collect(test, 2), 1);
	KUNIT_EXPECT_EQ(test, event(test, 0).ret_data[0], 0x5);
	KUNIT_EXPECT_EQ(test, event(test, 0).ret_data[1], 2);
	KUNIT_EXPECT_EQ(test, event(test, 0).ptr, ~3ULL);
	KUNIT_EXPECT_EQ(test, mark(test, 3, 0x2), 0);
	KUNIT_EXPECT_EQ(test, collect(test, 2), 1);
	KUNIT_EXPECT_EQ(test, event(test, 0).ret_data[0], 0x2);
	KUNIT_EXPECT_EQ(test, event(test, 0).ret_data[1], 1);
}

static void each_mark_is_kept_with_its_data(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct ukevent uk = request(3, 0);
	int i;

	add(test, 3, KEVENT_REQ_KEEP_EACH);
	for (i = 0; i < 40; i++) {
		uk.event = i % 2 ? 0x101 : 0x2;
		uk.ret_data[0] = i;
		uk.ret_data[1] = ~i;
		KUNIT_EXPECT_EQ(test,
				kevent_mark(f->q, &kevent_user_ops, &uk, NULL),
				0);
	}
	KUNIT_EXPECT_EQ(test, collect(test, 17), 17);
	KUNIT_EXPECT_EQ(test, event(test, 16).ret_data[0], 16);
	KUNIT_EXPECT_EQ(test, collect(test, SIZE), 23);
	KUNIT_EXPECT_EQ(test, event(test, 0).ret_data[0], 17);
	KUNIT_EXPECT_EQ(test, event(test, 0).event, 0x1);
	KUNIT_EXPECT_EQ(test, event(test, 22).ret_data[1], ~39U);
	KUNIT_EXPECT_EQ(test, event(test, 22).req_flags, KEVENT_REQ_KEEP_EACH);
	KUNIT_EXPECT_EQ(test, collect(test, SIZE), 0);
}

static void what_is_not_taken_stays(struct kunit *test)
{
	u64 id;

	for (id = 0; id < 5; id++)
		add(test, id, KEVENT_REQ_READY);
	KUNIT_EXPECT_EQ(test, collect(test, 2), 2);
	KUNIT_EXPECT_EQ(test, collect(test, SIZE), 3);
	KUNIT_EXPECT_EQ(test, event(test, 0).id.raw_u64, 2);
}

static void unwritable_memory_loses_nothing(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct kring to = { .size = 1 };

	add(test, 1, KEVENT_REQ_READY);
	KUNIT_EXPECT_EQ(test, kevent_collect(f->q, &to, 1, true), -EFAULT);
	KUNIT_EXPECT_EQ(test, f->q->nr_queued, 1);
	KUNIT_EXPECT_EQ(test, collect(test, 1), 1);
}

static u32 count_watches(struct kevent_index *index)
{
	u32 at, nr = 0;

	guard(rcu)();
	for (at = 0; kevent_index_next(index, &at); at++)
		nr++;
	return nr;
}

#define MANY	500

static void insert(struct kunit *test, struct kevent_index *index,
		   struct kevent **ke, u32 nr)
{
	struct kmem_cache *cache = kevent_caches[KEVENT_USER];
	u32 i;

	for (i = 0; i < nr; i++) {
		ke[i] = kmem_cache_zalloc(cache, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, ke[i]);
		ke[i]->type = KEVENT_USER;
		KUNIT_EXPECT_EQ(test, kevent_index_insert(index, ke[i]), 0);
	}
}

static void index_has_all_watches(struct kunit *test)
{
	struct kevent **ke = kunit_kcalloc(test, MANY, sizeof(*ke), GFP_KERNEL);
	struct kevent_index index;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, ke);
	kevent_index_init(&index);
	insert(test, &index, ke, MANY);
	KUNIT_EXPECT_EQ(test, count_watches(&index), MANY);
	for (i = 0; i < MANY; i++)
		if (i % 3 || i < MANY / 2)
			kevent_index_erase(&index, ke[i]);
	KUNIT_EXPECT_EQ(test, count_watches(&index), 83);
	insert(test, &index, ke, MANY / 2);
	KUNIT_EXPECT_EQ(test, count_watches(&index), MANY / 2 + 83);
	for (i = 0; i < MANY; i++)
		if (i % 3 == 0 || i < MANY / 2)
			kevent_index_erase(&index, ke[i]);
	KUNIT_EXPECT_EQ(test, count_watches(&index), 0);
	kevent_index_destroy(&index);
}

static void oneshot_goes_with_its_event(struct kunit *test)
{
	struct fixture *f = test->priv;

	add(test, 1, KEVENT_REQ_ONESHOT);
	KUNIT_EXPECT_EQ(test, mark(test, 1, 0), 0);
	KUNIT_EXPECT_TRUE(test, has_watches(f->q));
	KUNIT_EXPECT_EQ(test, collect(test, 1), 1);
	KUNIT_EXPECT_FALSE(test, has_watches(f->q));
	KUNIT_EXPECT_EQ(test, mark(test, 1, 0), -ENOENT);
}

static void dispatch_waits_for_modify(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct ukevent uk = request(1, KEVENT_REQ_DISPATCH);

	add(test, 1, KEVENT_REQ_DISPATCH);
	KUNIT_EXPECT_EQ(test, mark(test, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, collect(test, 1), 1);
	KUNIT_EXPECT_EQ(test, mark(test, 1, 0x8), 0);
	KUNIT_EXPECT_EQ(test, collect(test, 1), 0);
	KUNIT_EXPECT_EQ(test,
			kevent_modify(f->q, &kevent_user_ops, &uk, NULL),
			0);
	KUNIT_EXPECT_EQ(test, collect(test, 1), 1);
	KUNIT_EXPECT_EQ(test, event(test, 0).ret_data[0], 0x8);
}

static void removed_events_are_not_delivered(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct ukevent uk = request(1, 0);

	add(test, 1, KEVENT_REQ_READY);
	add(test, 2, KEVENT_REQ_READY);
	KUNIT_EXPECT_EQ(test,
			kevent_remove(f->q, &kevent_user_ops, &uk, NULL),
			0);
	KUNIT_EXPECT_EQ(test,
			kevent_remove(f->q, &kevent_user_ops, &uk, NULL),
			-ENOENT);
	KUNIT_EXPECT_EQ(test, collect(test, 2), 1);
	KUNIT_EXPECT_EQ(test, event(test, 0).id.raw_u64, 2);
}

/* A watch on its way out, which the caller buries */
static struct kevent *add_dead(struct kunit *test, u64 id)
{
	struct fixture *f = test->priv;
	struct kevent *ke;

	add(test, id, 0);
	ke = kevent_key_find(f->q, KEVENT_USER, id);
	KUNIT_ASSERT_NOT_NULL(test, ke);
	KUNIT_ASSERT_TRUE(test, kevent_kill_one(ke, false));
	return ke;
}

/* Its source may report until detach() returns. */
static void dead_watches_report_nothing(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct kevent *ke = add_dead(test, 1);

	kevent_ready(ke, 0x1);
	kevent_recheck(ke);
	kevent_broken(ke);
	KUNIT_EXPECT_EQ(test, f->q->nr_queued, 0);
	kevent_bury(ke, false);
}

static void dead_watch_gives_way(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct kevent *ke = add_dead(test, 1);

	add(test, 1, 0);
	kevent_bury(ke, false);
	KUNIT_EXPECT_NOT_NULL(test, kevent_key_find(f->q, KEVENT_USER, 1));
	KUNIT_EXPECT_EQ(test, mark(test, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, collect(test, 2), 1);
}

static void a_key_is_used_once(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct ukevent uk = request(1, 0);

	add(test, 1, 0);
	KUNIT_EXPECT_EQ(test,
			PTR_ERR(kevent_add(f->q, &kevent_user_ops, &uk, EMPTY_FD)),
			-EEXIST);
	KUNIT_EXPECT_EQ(test, mark(test, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, collect(test, 2), 1);
}

/* many_seen has the consumers that wait for several entries, by the position they have seen. */
static void check_many_seen(struct kunit *test, struct kevent_queue *q)
{
	struct kevent_consumer *w;
	struct rb_node *node;
	u64 seen = 0;
	u32 nr = 0;

	for (node = rb_first_cached(&q->many_seen); node; node = rb_next(node)) {
		w = rb_entry(node, struct kevent_consumer, seen_node);
		KUNIT_EXPECT_GE(test, w->end - w->min_nr, seen);
		seen = w->end - w->min_nr;
		nr++;
	}
	list_for_each_entry(w, &q->buffer_several, peers)
		nr++;
	KUNIT_EXPECT_EQ(test, nr, q->nr_several);
}

/* Invariants that kevent_next_sleeper() relies on */
static void check_sleepers(struct kunit *test)
{
	struct kevent_queue *q = ((struct fixture *)test->priv)->q;
	struct kevent_consumer *w;
	struct rb_node *node;
	u32 nr, peers = 0;
	u64 end = 0;

	nr = list_count_nodes(&q->sleepers);
	KUNIT_EXPECT_EQ(test, nr, q->nr_asleep - q->nr_woken);
	list_for_each_entry(w, &q->ring_sleepers, peers) {
		KUNIT_EXPECT_EQ(test, w->min_nr, 1);
		KUNIT_EXPECT_GE(test, w->end, end);
		end = w->end;
		peers++;
	}
	end = 0;
	for (node = rb_first_cached(&q->many_sleepers); node;
	     node = rb_next(node)) {
		w = rb_entry(node, struct kevent_consumer, node);
		KUNIT_EXPECT_GT(test, w->min_nr, 1);
		KUNIT_EXPECT_GE(test, w->end, end);
		end = w->end;
		peers++;
	}
	list_for_each_entry(w, &q->buffer_sleepers, peers) {
		KUNIT_EXPECT_FALSE(test, kevent_wants_ring(w));
		KUNIT_EXPECT_FALSE(test, w->several);
		peers++;
	}
	list_for_each_entry(w, &q->buffer_several, peers) {
		KUNIT_EXPECT_FALSE(test, kevent_wants_ring(w));
		KUNIT_EXPECT_TRUE(test, w->several);
		peers++;
	}
	KUNIT_EXPECT_EQ(test, peers, nr);
	check_many_seen(test, q);
}

/* How many sleepers of the ring have what they wait for, and the end of the first one */
static u32 count_content(struct kevent_queue *q, u64 *first)
{
	struct kevent_consumer *w;
	u32 nr = 0;

	*first = U64_MAX;
	list_for_each_entry(w, &q->sleepers, link) {
		if (!kevent_wants_ring(w) || w->end > q->ring.kidx)
			continue;
		*first = min(*first, w->end);
		nr++;
	}
	return nr;
}

/* An entry comes: it is for the one whose entries came first, if there is one. */
static void store_and_wake(struct kunit *test)
{
	struct kevent_queue *q = ((struct fixture *)test->priv)->q;
	u32 content, left;
	u64 first, next;
	bool woken;

	q->ring.uidx = ++q->ring.kidx;
	content = count_content(q, &first);
	woken = kevent_wake_one(q, KEVENT_OF_RING, false);
	KUNIT_EXPECT_EQ(test, woken, content > 0);
	left = count_content(q, &next);
	KUNIT_EXPECT_EQ(test, left, content - woken);
	KUNIT_EXPECT_GE(test, next, first);
	/* That one is done, and counts no more. */
	KUNIT_EXPECT_EQ(test, q->nr_woken, 0);
	check_sleepers(test);
}

/* A consumer that waits for @min_nr entries, of which it has seen some, or for events in @buf */
static void sleeper_with(struct kunit *test, struct kevent_consumer *w,
			 struct kring *buf, u32 min_nr, u32 seen)
{
	struct kevent_queue *q = ((struct fixture *)test->priv)->q;

	w->to = buf ?: &q->ring;
	w->task = current;
	w->min_nr = min_nr;
	w->old_kidx = (u32)q->ring.kidx - seen;
	kevent_sleepers_add(q, w);
}

static void sleeper_joins(struct kunit *test, struct kevent_consumer *w, u32 i)
{
	static struct kring empty;
	u32 min_nr = 1 + i * 7 % 5;

	/* It has seen some of what it waits for, and positions wrap around. */
	sleeper_with(test, w, i % 4 ? NULL : &empty, min_nr, i % min_nr);
	if (kevent_wants_ring(w))
		KUNIT_EXPECT_EQ(test, (u32)w->end, w->old_kidx + min_nr);
	check_sleepers(test);
}

/* A ring of so many slots, in memory that nobody reads; none if @size is 0 */
static void ring_has(struct kevent_queue *q, u32 size)
{
	q->ring.size = size;
	q->ring.user = size ? (struct kevent_ring __user *)PAGE_SIZE : NULL;
}

static void sleepers_are_found_by_what_they_wait_for(struct kunit *test)
{
	struct kevent_consumer *w = kunit_kcalloc(test, SIZE, sizeof(*w), GFP_KERNEL);
	struct kevent_queue *q = ((struct fixture *)test->priv)->q;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	spin_lock_irq(&q->ready_lock);
	ring_has(q, SIZE);
	q->ring.kidx = U32_MAX - 8ULL;
	q->ring.uidx = q->ring.kidx;
	for (i = 0; i < SIZE; i++) {
		sleeper_joins(test, &w[i], i);
		if (i % 3 == 2)
			store_and_wake(test);
	}
	for (i = 0; i < SIZE; i++)
		store_and_wake(test);
	KUNIT_EXPECT_EQ(test, q->nr_asleep, SIZE / 4);
	KUNIT_EXPECT_FALSE(test, kevent_wake_all(q, KEVENT_OF_BUFFER, false));
	KUNIT_EXPECT_EQ(test, q->nr_woken, SIZE / 4);
	ring_has(q, 0);
	check_sleepers(test);
	spin_unlock_irq(&q->ready_lock);
}

/* The first needs fewer entries than the second, but the second has some, and no more come. */
static void full_ring_wakes_who_has_some(struct kunit *test)
{
	struct kevent_queue *q = ((struct fixture *)test->priv)->q;
	struct kevent_consumer *w = kunit_kcalloc(test, 3, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	spin_lock_irq(&q->ready_lock);
	ring_has(q, 8);
	q->ring.kidx = 20;
	q->ring.uidx = 13;
	sleeper_with(test, &w[0], NULL, 2, 0);
	sleeper_with(test, &w[1], NULL, 4, 1);
	sleeper_with(test, &w[2], NULL, 1, 0);
	KUNIT_EXPECT_FALSE(test, kevent_wake_one(q, KEVENT_OF_RING, false));
	q->ring.uidx--;
	KUNIT_EXPECT_TRUE(test, kevent_wake_one(q, KEVENT_OF_RING, false));
	KUNIT_EXPECT_TRUE(test, w[1].woken);
	KUNIT_EXPECT_FALSE(test, kevent_wake_one(q, KEVENT_OF_RING, false));
	KUNIT_EXPECT_FALSE(test, w[0].woken || w[2].woken || w[2].done);
	ring_has(q, 0);
	check_sleepers(test);
	spin_unlock_irq(&q->ready_lock);
}

/* One event is for one that it is enough for, whoever came first or last. */
static void event_is_for_one_that_it_is_enough_for(struct kunit *test)
{
	struct kevent_queue *q = ((struct fixture *)test->priv)->q;
	static struct kring empty;
	struct kevent_consumer *w = kunit_kcalloc(test, 4, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	spin_lock_irq(&q->ready_lock);
	ring_has(q, 8);
	q->ring.kidx = 20;
	q->ring.uidx = 20;
	sleeper_with(test, &w[0], NULL, 3, 0);
	sleeper_with(test, &w[1], &empty, 1, 0);
	sleeper_with(test, &w[2], &empty, 2, 0);
	sleeper_with(test, &w[3], NULL, 3, 2);
	/* It lacks one, and was the last. */
	KUNIT_EXPECT_TRUE(test, kevent_may_wait_for_ring(q));
	KUNIT_EXPECT_TRUE(test, kevent_wake_one(q, KEVENT_ANY, false));
	KUNIT_EXPECT_TRUE(test, w[3].woken);
	KUNIT_EXPECT_FALSE(test, kevent_may_wait_for_ring(q));
	KUNIT_EXPECT_TRUE(test, kevent_wake_one(q, KEVENT_ANY, false));
	KUNIT_EXPECT_TRUE(test, w[1].woken);
	KUNIT_EXPECT_TRUE(test, kevent_wake_one(q, KEVENT_OF_BUFFER, false));
	KUNIT_EXPECT_TRUE(test, w[2].woken);
	KUNIT_EXPECT_TRUE(test, kevent_wake_one(q, KEVENT_ANY, false));
	KUNIT_EXPECT_TRUE(test, w[0].woken);
	ring_has(q, 0);
	check_sleepers(test);
	spin_unlock_irq(&q->ready_lock);
}

static void types_are_known_reserved_or_invalid(struct kunit *test)
{
	KUNIT_EXPECT_PTR_EQ(test, kevent_source(KEVENT_USER), &kevent_user_ops);
	KUNIT_EXPECT_EQ(test, PTR_ERR(kevent_source(KEVENT_NAIO)), -ENOSYS);
	KUNIT_EXPECT_EQ(test, PTR_ERR(kevent_source(KEVENT_BOUND + 1)),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(kevent_source(U32_MAX)), -EINVAL);
}

static void sources_left_out_are_not_implemented(struct kunit *test)
{
	static const struct {
		u32	type;
		bool	built;
	} sources[] = {
		{ KEVENT_SOCKET, true },
		{ KEVENT_PIPE, true },
		{ KEVENT_POLL, true },
		{ KEVENT_TIMER, IS_ENABLED(CONFIG_KEVENT_TIMER) },
		{ KEVENT_INODE, IS_ENABLED(CONFIG_KEVENT_INODE) },
		{ KEVENT_PROC, IS_ENABLED(CONFIG_KEVENT_PROC) },
		{ KEVENT_FUTEX, IS_ENABLED(CONFIG_KEVENT_FUTEX) },
		{ KEVENT_POSIX_TIMER, IS_ENABLED(CONFIG_KEVENT_POSIX_TIMER) },
		{ KEVENT_SIGNAL, IS_ENABLED(CONFIG_KEVENT_SIGNAL) },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(sources); i++)
		KUNIT_EXPECT_EQ_MSG(test,
				    PTR_ERR_OR_ZERO(kevent_source(sources[i].type)),
				    sources[i].built ? 0 : -ENOSYS,
				    "type %u", sources[i].type);
}

/* Rules of source_ops.h for methods that go together */
static void check_source(struct kunit *test, const struct kevent_source_ops *ops)
{
	bool level = ops->flags & KEVENT_SOURCE_LEVEL;
	const char *name = ops->name;

	KUNIT_ASSERT_NOT_NULL(test, name);
	KUNIT_EXPECT_TRUE_MSG(test, ops->check && ops->attach, "%s", name);
	KUNIT_EXPECT_GE_MSG(test, ops->size,
			    ops->flags & KEVENT_SOURCE_FILE ? sizeof(struct kevent_file) :
					sizeof(struct kevent_keyed), "%s", name);
	KUNIT_EXPECT_FALSE_MSG(test, ops->flags & KEVENT_SOURCE_FILE && ops->key, "%s",
			       name);
	KUNIT_EXPECT_FALSE_MSG(test, ops->amount && !level && !ops->delivered, "%s", name);
	KUNIT_EXPECT_FALSE_MSG(test, ops->flags & KEVENT_SOURCE_ARMS && !ops->modify_unlocked,
			       "%s", name);
	KUNIT_EXPECT_FALSE_MSG(test,
			       level && (!ops->collect || ops->fill || ops->delivered),
			       "%s", name);
	KUNIT_EXPECT_FALSE_MSG(test, ops->collect && ops->marks, "%s", name);
}

static void sources_have_methods_that_go_together(struct kunit *test)
{
	int type;

	for (type = 0; type < KEVENT_NR_TYPES; type++)
		if (kevent_sources[type])
			check_source(test, kevent_sources[type]);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(events_come_in_the_order_of_marks),
	KUNIT_CASE(marks_merge_until_delivered),
	KUNIT_CASE(each_mark_is_kept_with_its_data),
	KUNIT_CASE(what_is_not_taken_stays),
	KUNIT_CASE(unwritable_memory_loses_nothing),
	KUNIT_CASE(index_has_all_watches),
	KUNIT_CASE(oneshot_goes_with_its_event),
	KUNIT_CASE(dispatch_waits_for_modify),
	KUNIT_CASE(removed_events_are_not_delivered),
	KUNIT_CASE(dead_watches_report_nothing),
	KUNIT_CASE(dead_watch_gives_way),
	KUNIT_CASE(a_key_is_used_once),
	KUNIT_CASE(sleepers_are_found_by_what_they_wait_for),
	KUNIT_CASE(full_ring_wakes_who_has_some),
	KUNIT_CASE(event_is_for_one_that_it_is_enough_for),
	KUNIT_CASE(types_are_known_reserved_or_invalid),
	KUNIT_CASE(sources_left_out_are_not_implemented),
	KUNIT_CASE(sources_have_methods_that_go_together),
	{}
};

static struct kunit_suite suite = {
	.name		= "kevent-queue",
	.init		= setup,
	.exit		= teardown,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of the kevent queue");
MODULE_LICENSE("GPL");
