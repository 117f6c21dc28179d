// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets, pipes and all other files one can poll, by their wait queues
 */

#include <linux/cleanup.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/init.h>
#include <linux/io_uring.h>
#include <linux/kevent.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/slab.h>

/* Needs what poll.h includes. */
#include <linux/eventpoll.h>

#include "kevent.h"

/*
 * Wake-ups of sockets and pipes name what has become true in their keys. Other
 * files may not, or may need a ->poll() to arm the next wake-up.
 */
#define EV_POLL_EXACT	((__force __poll_t)BIT(15))

/* Conditions reported whether asked for or not */
#define EV_POLL_ALWAYS	(EPOLLERR | EPOLLHUP)

/*
 * Wake-up keys name these with too much in them, or stand for a change that
 * only ->poll() can tell: who asks for one of them is verified.
 */
#define EV_POLL_INEXACT	(EPOLLPRI | EPOLLRDBAND | EPOLLWRBAND | EPOLLRDHUP)

#define EV_POLL_EVENTS							\
	(EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLERR | EPOLLHUP |		\
	 EPOLLRDNORM | EPOLLRDBAND | EPOLLWRNORM | EPOLLWRBAND |	\
	 EPOLLMSG | EPOLLRDHUP)

/**
 * struct kevent_poll - a watch of a file
 * @ke:		the watch
 * @wait:	in the file's wait queue. Its private member is the head, see
 *		ev_poll_head(); with a file that has more than one wait queue it
 *		is the first &struct kevent_poll_more, tagged
 * @file:	I: the file; no reference is held, detach() comes before its end
 * @next:	F: next watch of @file
 * @table:	I: the file table the watch was added through, to compare
 */
struct kevent_poll {
	struct kevent		ke;
	wait_queue_entry_t	wait;
	struct file		*file;
	struct kevent_poll	*next;
	struct files_struct	*table;
};

/**
 * struct kevent_poll_more - a further wait queue of a watched file
 * @kp:		the watch
 * @wait:	in the wait queue; its private member is the head
 * @head:	in the first element: the head of &kevent_poll.wait
 * @next:	next element
 * @rcu:	for the freeing
 */
struct kevent_poll_more {
	struct kevent_poll	*kp;
	wait_queue_entry_t	wait;
	void			*head;
	struct kevent_poll_more	*next;
	struct rcu_head		rcu;
};

#define EV_POLL_MORE	1UL

struct kmem_cache *kevent_poll_cache;

static struct kevent_poll *to_poll(struct kevent *ke)
{
	return container_of(ke, struct kevent_poll, ke);
}

static struct kevent_poll_more *ev_poll_more(const struct kevent_poll *kp)
{
	unsigned long private = (unsigned long)READ_ONCE(kp->wait.private);

	if (!(private & EV_POLL_MORE))
		return NULL;
	return (struct kevent_poll_more *)(private & ~EV_POLL_MORE);
}

/* Where the head of kp->wait is remembered; NULL there when it is gone. */
static void **ev_poll_head(struct kevent_poll *kp)
{
	struct kevent_poll_more *more = ev_poll_more(kp);

	return more ? &more->head : &kp->wait.private;
}

/* Masks of poll() and events of a type */

static __poll_t ev_poll_keys(const struct kevent_poll *kp)
{
	u32 event = kp->ke.event;
	__poll_t keys = EV_POLL_ALWAYS;

	if (sock_from_file(kp->file) || S_ISFIFO(file_inode(kp->file)->i_mode))
		keys |= EV_POLL_EXACT;
	if (kp->ke.type == KEVENT_POLL)
		return keys | (__force __poll_t)event;
	if (event & (KEVENT_SOCKET_RECV | KEVENT_SOCKET_ACCEPT))
		keys |= EPOLLIN | EPOLLRDNORM;
	if (event & KEVENT_SOCKET_SEND)
		keys |= EPOLLOUT | EPOLLWRNORM;
	return keys;
}

static u32 ev_poll_events(const struct kevent *ke, __poll_t mask)
{
	u32 events = 0, wanted = READ_ONCE(ke->event);

	if (ke->type == KEVENT_POLL)
		return (__force u32)mask &
		       (wanted | (__force u32)EV_POLL_ALWAYS);
	if (mask & (EPOLLIN | EPOLLRDNORM))
		events |= KEVENT_SOCKET_RECV | KEVENT_SOCKET_ACCEPT;
	if (mask & (EPOLLOUT | EPOLLWRNORM))
		events |= KEVENT_SOCKET_SEND;
	events &= wanted;
	if (events || mask & EV_POLL_ALWAYS)
		events |= (__force u32)(mask & (EV_POLL_ALWAYS | EPOLLRDHUP));
	return events;
}

/* Wake-ups */

/* Does the key of a wake-up tell all that is to be reported? */
static bool ev_poll_key_suffices(const struct kevent *ke, __poll_t keys,
				 __poll_t key)
{
	if (!key || key & EV_POLL_ALWAYS || keys & EV_POLL_INEXACT ||
	    !(keys & EV_POLL_EXACT))
		return false;
	return (READ_ONCE(ke->req_flags) &
		(KEVENT_REQ_ET | KEVENT_REQ_LAST_CHECK)) == KEVENT_REQ_ET;
}

static void ev_poll_fire(struct kevent *ke, __poll_t key)
{
	__poll_t keys = (__force __poll_t)READ_ONCE(ke->keys);

	if (key && !(key & keys))
		return;
	if (ev_poll_key_suffices(ke, keys, key))
		kevent_ready(ke, ev_poll_events(ke, key), 0);
	else
		kevent_ready(ke, 0, KE_VERIFY);
}

/*
 * The owner of a wait queue head that dies before the files it serves says so.
 * Clearing @head must come last: a remover that sees NULL may free the watch.
 */
static void ev_poll_orphan(struct kevent *ke, wait_queue_entry_t *wait,
			   void **head)
{
	kevent_ready(ke, 0, KE_BROKEN);
	list_del_init(&wait->entry);
	/* Pairs with ev_poll_unhook(). */
	smp_store_release(head, NULL);
}

static int ev_poll_wake(wait_queue_entry_t *wait, unsigned int mode, int sync,
			void *key)
{
	struct kevent_poll *kp = container_of(wait, struct kevent_poll, wait);
	__poll_t mask = key_to_poll(key);

	if (unlikely(mask & POLLFREE))
		ev_poll_orphan(&kp->ke, wait, ev_poll_head(kp));
	else
		ev_poll_fire(&kp->ke, mask);
	return 1;
}

static int ev_poll_wake_more(wait_queue_entry_t *wait, unsigned int mode,
			     int sync, void *key)
{
	struct kevent_poll_more *more =
		container_of(wait, struct kevent_poll_more, wait);
	__poll_t mask = key_to_poll(key);

	if (unlikely(mask & POLLFREE))
		ev_poll_orphan(&more->kp->ke, wait, &wait->private);
	else
		ev_poll_fire(&more->kp->ke, mask);
	return 1;
}

/*
 * Whoever frees a head after POLLFREE delays that by RCU: while the head is not
 * NULL, and RCU is held since that was seen, it can be locked.
 */
static void ev_poll_unhook(wait_queue_entry_t *wait, void **slot)
{
	struct wait_queue_head *head;
	unsigned long flags;

	guard(rcu)();
	/* Pairs with ev_poll_orphan(). */
	head = smp_load_acquire(slot);
	if (!head)
		return;
	spin_lock_irqsave(&head->lock, flags);
	list_del_init(&wait->entry);
	WRITE_ONCE(*slot, NULL);
	spin_unlock_irqrestore(&head->lock, flags);
}

/* Arming */

/**
 * struct kevent_poll_table - argument of ev_poll_queue()
 * @pt:		what ->poll() gets
 * @kp:		the watch
 * @queues:	wait queues joined
 * @err:	-errno when one could not be joined
 */
struct kevent_poll_table {
	poll_table		pt;
	struct kevent_poll	*kp;
	unsigned int		queues;
	int			err;
};

/* Move the head of kp->wait to @more. POLLFREE may clear it, under its lock. */
static void ev_poll_tag(struct kevent_poll *kp, struct kevent_poll_more *more)
{
	void *tagged = (void *)((unsigned long)more | EV_POLL_MORE);
	wait_queue_head_t *head;
	unsigned long flags;

	guard(rcu)();
	/* Pairs with ev_poll_orphan(). */
	head = smp_load_acquire(&kp->wait.private);
	if (!head) {
		kp->wait.private = tagged;
		return;
	}
	spin_lock_irqsave(&head->lock, flags);
	more->head = kp->wait.private;
	kp->wait.private = tagged;
	spin_unlock_irqrestore(&head->lock, flags);
}

static int ev_poll_queue_more(struct kevent_poll *kp, wait_queue_head_t *head)
{
	struct kevent_poll_more *more, *first = ev_poll_more(kp);

	more = kzalloc(sizeof(*more), GFP_KERNEL_ACCOUNT);
	if (!more)
		return -ENOMEM;
	more->kp = kp;
	init_waitqueue_func_entry(&more->wait, ev_poll_wake_more);
	more->wait.private = head;
	if (first) {
		more->next = first->next;
		first->next = more;
	} else {
		ev_poll_tag(kp, more);
	}
	add_wait_queue(head, &more->wait);
	return 0;
}

/* Called by ->poll() for each of the file's wait queues. */
static void ev_poll_queue(struct file *file, wait_queue_head_t *head,
			  poll_table *pt)
{
	struct kevent_poll_table *table =
		container_of(pt, struct kevent_poll_table, pt);
	struct kevent_poll *kp = table->kp;

	if (table->err)
		return;
	if (table->queues++) {
		table->err = ev_poll_queue_more(kp, head);
		return;
	}
	kp->wait.private = head;
	add_wait_queue(head, &kp->wait);
}

static bool ev_poll_matches(const struct kevent_poll *kp,
			    const struct kevent_queue *q, u32 type, u32 fd)
{
	return kp->ke.queue == q && kp->ke.type == type &&
	       kp->ke.id_low == fd && !(READ_ONCE(kp->ke.state) & KE_DEAD);
}

/* Link a watch to its file; one per queue, type and descriptor. */
static int ev_poll_link(struct kevent_poll *kp)
{
	struct kevent *ke = &kp->ke;
	struct file *file = kp->file;
	struct kevent_poll *other;
	unsigned int nr = 0;
	int err = 0;

	spin_lock(&file->f_lock);
	for (other = file->f_kevent; other && !err; other = other->next) {
		if (ev_poll_matches(other, ke->queue, ke->type, ke->id_low))
			err = -EEXIST;
		else if (++nr >= KEVENT_MAX_PER_FILE)
			err = -ENOSPC;
	}
	if (!err) {
		kp->next = file->f_kevent;
		WRITE_ONCE(file->f_kevent, kp);
	}
	spin_unlock(&file->f_lock);
	return err;
}

static void ev_poll_unlink(struct kevent_poll *kp)
{
	struct file *file = kp->file;
	struct kevent_poll **at;

	spin_lock(&file->f_lock);
	for (at = &file->f_kevent; *at; at = &(*at)->next) {
		if (*at != kp)
			continue;
		WRITE_ONCE(*at, kp->next);
		break;
	}
	spin_unlock(&file->f_lock);
}

/*
 * Is the descriptor still what it was? close() and its like clear the slot
 * under file_lock, and then look for watches: either they see ours, which is
 * linked, or we see the slot here.
 */
static bool ev_poll_fd_is_current(const struct kevent_poll *kp)
{
	struct files_struct *files = kp->table;
	bool ret;

	spin_lock(&files->file_lock);
	ret = files_lookup_fd_locked(files, kp->ke.id_low) == kp->file;
	spin_unlock(&files->file_lock);
	return ret;
}

static int ev_poll_attach(struct kevent *ke, const struct ukevent *uk,
			  struct file *file)
{
	struct kevent_poll *kp = to_poll(ke);
	struct kevent_poll_table table = { .kp = kp };
	__poll_t mask;
	int err;

	init_waitqueue_func_entry(&kp->wait, ev_poll_wake);
	INIT_LIST_HEAD(&kp->wait.entry);
	kp->file = file;
	kp->table = current->files;
	ke->keys = (__force u16)ev_poll_keys(kp);
	err = ev_poll_link(kp);
	if (err)
		return err;
	init_poll_funcptr(&table.pt, ev_poll_queue);
	table.pt._key = (__force __poll_t)ke->keys & EV_POLL_EVENTS;
	mask = vfs_poll(file, &table.pt);
	if (table.err)
		return table.err;
	if (!ev_poll_fd_is_current(kp))
		return -EBADF;
	return ev_poll_events(ke, mask);
}

static void ev_poll_detach(struct kevent *ke)
{
	struct kevent_poll *kp = to_poll(ke);
	struct kevent_poll_more *more;

	ev_poll_unlink(kp);
	ev_poll_unhook(&kp->wait, ev_poll_head(kp));
	for (more = ev_poll_more(kp); more; more = more->next)
		ev_poll_unhook(&more->wait, &more->wait.private);
}

static void ev_poll_destroy(struct kevent *ke)
{
	struct kevent_poll_more *next, *more = ev_poll_more(to_poll(ke));

	for (; more; more = next) {
		next = more->next;
		kfree_rcu(more, rcu);
	}
}

static void ev_poll_modified(struct kevent *ke)
{
	WRITE_ONCE(ke->keys,
		   (__force u16)ev_poll_keys(to_poll(ke)));
}

static struct kevent *ev_poll_find(struct kevent_queue *q,
				   const struct ukevent *uk, struct file *file)
{
	struct kevent_poll *kp;

	spin_lock(&file->f_lock);
	kp = file->f_kevent;
	while (kp && !ev_poll_matches(kp, q, uk->type, uk->id.raw[0]))
		kp = kp->next;
	spin_unlock(&file->f_lock);
	return kp ? &kp->ke : NULL;
}

/*
 * A watch that is not dead, under ready_lock, has a file that exists: the
 * file's end goes through kevent_file_release().
 */
static bool ev_poll_hold(struct kevent *ke)
{
	return atomic_long_inc_not_zero(&to_poll(ke)->file->f_count);
}

static void ev_poll_unhold(struct kevent *ke)
{
	fput(to_poll(ke)->file);
}

static u32 ev_poll_collect(struct kevent *ke)
{
	__poll_t keys = (__force __poll_t)READ_ONCE(ke->keys);
	poll_table pt = { ._key = keys & EV_POLL_EVENTS };

	return ev_poll_events(ke, vfs_poll(to_poll(ke)->file, &pt));
}

/* What may be watched */

static int ev_poll_check_nesting(struct file *file)
{
	if (is_kevent_file(file) || is_epoll_file(file) ||
	    io_is_uring_fops(file))
		return -ELOOP;
	return 0;
}

static int ev_poll_check(const struct ukevent *uk, struct file *file)
{
	if (uk->event & ~(__force u32)EV_POLL_EVENTS)
		return -EINVAL;
	return ev_poll_check_nesting(file);
}

static int ev_socket_check(const struct ukevent *uk, struct file *file)
{
	if (uk->event & ~(KEVENT_SOCKET_RECV | KEVENT_SOCKET_ACCEPT |
			  KEVENT_SOCKET_SEND))
		return -EINVAL;
	return ev_poll_check_nesting(file) ?:
	       sock_from_file(file) ? 0 : -ENOTSOCK;
}

static int ev_pipe_check(const struct ukevent *uk, struct file *file)
{
	if (uk->event & ~(KEVENT_SOCKET_RECV | KEVENT_SOCKET_SEND))
		return -EINVAL;
	return ev_poll_check_nesting(file) ?:
	       S_ISFIFO(file_inode(file)->i_mode) ? 0 : -EINVAL;
}

/* The end of descriptors and files */

/*
 * Kill the watch if nobody else has. It is linked to its file, under f_lock, so
 * it exists and so does its queue.
 */
static bool ev_poll_kill(struct kevent_poll *kp)
{
	struct kevent_queue *q = kp->ke.queue;
	unsigned long flags;
	bool killed;

	lockdep_assert_held(&kp->file->f_lock);

	spin_lock_irqsave(&q->ready_lock, flags);
	killed = kevent_kill(&kp->ke);
	spin_unlock_irqrestore(&q->ready_lock, flags);
	return killed;
}

/* Kill one watch of @file whose descriptor has left @table. */
static struct kevent *ev_poll_kill_closed(struct file *file,
					  struct files_struct *table)
{
	struct kevent_poll *kp;

	rcu_read_lock();
	spin_lock(&file->f_lock);
	for (kp = file->f_kevent; kp; kp = kp->next)
		if (kp->table == table &&
		    files_lookup_fd_raw(table, kp->ke.id_low) != file &&
		    ev_poll_kill(kp))
			break;
	spin_unlock(&file->f_lock);
	rcu_read_unlock();
	return kp ? &kp->ke : NULL;
}

/**
 * kevent_file_flush - drop watches whose descriptor was closed
 * @file: the file; the caller holds a reference
 * @table: the &struct files_struct it was closed in
 */
void kevent_file_flush(struct file *file, fl_owner_t table)
{
	struct kevent *ke;

	if (!table)
		return;
	while ((ke = ev_poll_kill_closed(file, table))) {
		kevent_bury(ke, false);
		cond_resched();
	}
}

/* Kill one watch of a file nobody has a reference to. */
static struct kevent *ev_poll_kill_last(struct file *file)
{
	struct kevent_poll *kp;

	spin_lock(&file->f_lock);
	kp = file->f_kevent;
	/* Everybody else who kills it has the file pinned until it is gone. */
	if (kp && WARN_ON_ONCE(!ev_poll_kill(kp)))
		kp = NULL;
	spin_unlock(&file->f_lock);
	return kp ? &kp->ke : NULL;
}

/**
 * kevent_file_release - drop the watches of a file that is going away
 * @file: the file, without references
 */
void kevent_file_release(struct file *file)
{
	struct kevent *ke;

	while ((ke = ev_poll_kill_last(file))) {
		kevent_bury(ke, false);
		cond_resched();
	}
}

#define EV_POLL_OPS(_name, _check)			\
	.name		= _name,			\
	.file		= true,				\
	.mergeable	= true,				\
	.cache		= &kevent_poll_cache,		\
	.check		= _check,			\
	.attach		= ev_poll_attach,		\
	.detach		= ev_poll_detach,		\
	.destroy	= ev_poll_destroy,		\
	.modified	= ev_poll_modified,		\
	.find		= ev_poll_find,			\
	.hold		= ev_poll_hold,			\
	.unhold		= ev_poll_unhold,		\
	.collect	= ev_poll_collect

const struct kevent_source_ops kevent_socket_ops = {
	EV_POLL_OPS("socket", ev_socket_check),
};

const struct kevent_source_ops kevent_pipe_ops = {
	EV_POLL_OPS("pipe", ev_pipe_check),
};

const struct kevent_source_ops kevent_poll_ops = {
	EV_POLL_OPS("poll", ev_poll_check),
};

static int __init ev_poll_init(void)
{
	BUILD_BUG_ON(offsetof(struct kevent_poll, ke));
	BUILD_BUG_ON(sizeof(struct kevent_poll) > 128 &&
		     !IS_ENABLED(CONFIG_DEBUG_SPINLOCK));
	kevent_poll_cache = KMEM_CACHE(kevent_poll, SLAB_HWCACHE_ALIGN |
				       SLAB_PANIC | SLAB_ACCOUNT);
	return 0;
}
core_initcall(ev_poll_init);
