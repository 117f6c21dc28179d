// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets, pipes and all other files one can poll, by their wait queues
 */

#include <linux/cleanup.h>
#include <linux/eventfd.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "../core/busy_poll.h"
#include "../core/source.h"
#include "../host.h"
#include "file_nest.h"
#include "file_report.h"
#include "file_wait.h"

/*
 * Conditions that wake-up keys do not tell. A key may contain one that has not become true, or
 * may be 0 for a change that only ->poll() knows. Watches that ask for one of them are verified.
 */
#define EV_POLL_INEXACT							\
	(EPOLLPRI | EPOLLRDBAND | EPOLLWRBAND | EPOLLRDHUP | EPOLLMSG)

/* Keys */

static bool ev_poll_is_eventfd(struct file *file)
{
	struct eventfd_ctx *ctx = eventfd_ctx_fileget(file);

	if (IS_ERR(ctx))
		return false;
	eventfd_ctx_put(ctx);
	return true;
}

static struct socket *ev_poll_socket(const struct kevent_poll *kp,
				     struct file *file)
{
	return kp->kf.ke.type == KEVENT_PIPE ? NULL : kevent_socket(file);
}

/* epoll and io_uring wake up with the one name of data. */
static __poll_t ev_poll_nesting_keys(struct file *file, __poll_t keys)
{
	__poll_t more = keys & EPOLLRDNORM ? EPOLLIN : 0;

	if (kevent_is_nesting(file))
		return more | EV_POLL_NESTING;
	return host_is_uring(file) ? more : 0;
}

/* @sock: of ev_poll_socket() */
static inline __poll_t ev_poll_keys(const struct kevent_poll *kp,
				    struct file *file,
				    const struct socket *sock)
{
	bool pipe = kp->kf.ke.type == KEVENT_PIPE;
	u32 event = kp->kf.ke.event;
	__poll_t keys = EV_POLL_ALWAYS;

	if (kp->kf.ke.type == KEVENT_POLL)
		keys |= (__force __poll_t)event;
	if (!(keys & EV_POLL_INEXACT) &&
	    (pipe || sock || host_pipe(file) || ev_poll_is_eventfd(file)))
		keys |= EV_POLL_EXACT;
	if (sock && (sock->ops->family != AF_UNIX ||
		     (kp->kf.ke.type == KEVENT_SOCKET &&
		      event & (KEVENT_SOCKET_ACCEPT | KEVENT_SOCKET_EMPTY))))
		keys |= EV_POLL_EXTRA;
	if (kp->kf.ke.type == KEVENT_POLL)
		return keys | ev_poll_nesting_keys(file, keys);
	if (event & (KEVENT_SOCKET_RECV | KEVENT_SOCKET_ACCEPT))
		keys |= EPOLLIN | EPOLLRDNORM;
	if (event & KEVENT_SOCKET_SEND)
		keys |= EPOLLOUT | EPOLLWRNORM;
	if (event & KEVENT_SOCKET_EMPTY)
		keys |= EV_POLL_EMPTY;
	return keys;
}

#ifdef CONFIG_KEVENT_SOCK_DIRECT
/* The key of sock_def_readable() */
#define EV_POLL_READABLE	(EPOLLIN | EPOLLPRI | EPOLLRDNORM | EPOLLRDBAND)

/*
 * Data has come for a watch that is alone in a wait queue. The lock of the wait queue is
 * not held, so the watch may be dead and detached: kevent_ready() and its like do nothing
 * then. RCU keeps the watch, not its file. Returns false when it needs a wake-up.
 */
bool kevent_wake_sock(struct wait_queue_entry *wait, struct sock *sk)
{
	struct kevent *ke = &container_of(wait, struct kevent_poll,
					  wait)->kf.ke;
	__poll_t keys = (__force __poll_t)READ_ONCE(ke->keys);
	u32 events, amount = 0;

	if (!(keys & EV_POLL_EXACT))
		return false;
	if (!(keys & EV_POLL_READABLE))
		return true;
	events = ev_poll_key_events(ke, EV_POLL_READABLE);
	if (keys & EV_POLL_EXTRA) {
		kevent_busy_note(&ke->queue->busy, sk);
		if (ke->type == KEVENT_SOCKET && kevent_may_store(ke->queue))
			amount = ev_poll_sock_amount(sk, events);
	}
	kevent_ready_irqs_on(ke, events, amount);
	return true;
}
#endif

/* Arming */

/**
 * struct kevent_poll_table - argument of ev_poll_queue()
 * @pt:		what ->poll() gets
 * @kp:		the watch
 * @sock:	its socket, if it is of one
 * @queues:	wait queues joined
 * @err:	-errno when one could not be joined
 */
struct kevent_poll_table {
	poll_table		pt;
	struct kevent_poll	*kp;
	struct socket		*sock;
	unsigned int		queues;
	int			err;
};

/*
 * Move the head of kp->wait to @more. POLLFREE may clear it, under its lock, and
 * others look for it.
 */
static void ev_poll_tag(struct kevent_poll *kp, struct kevent_poll_more *more)
{
	void *tagged = (void *)((unsigned long)more | EV_POLL_MORE);
	wait_queue_head_t *head;

	guard(rcu)();
	/* Pairs with ev_poll_orphan(). */
	head = smp_load_acquire(&kp->wait.private);
	if (!head) {
		/* Pairs with ev_poll_more(). */
		smp_store_release(&kp->wait.private, tagged);
		return;
	}
	guard(spinlock_irqsave)(&head->lock);
	more->head = kp->wait.private;
	/* Pairs with ev_poll_more() and head_of(). */
	smp_store_release(&kp->wait.private, tagged);
}

/* Not in line: ADD of a file with one wait queue takes 11 instructions less. */
static noinline int ev_poll_join_more(struct kevent_poll *kp,
				      wait_queue_head_t *head)
{
	struct kevent_poll_more *more, *first = ev_poll_more(kp);

	more = kzalloc(sizeof(*more), GFP_KERNEL_ACCOUNT);
	if (!more)
		return -ENOMEM;
	if (!kevent_charge(kp->kf.ke.queue->owner, sizeof(*more))) {
		kfree(more);
		return -ENOSPC;
	}
	more->kp = kp;
	init_waitqueue_func_entry(&more->wait, ev_poll_wake_more);
	INIT_LIST_HEAD(&more->wait.entry);
	if (first) {
		more->next = first->next;
		first->next = more;
	} else {
		ev_poll_tag(kp, more);
	}
	return file_wait_join_more(more, head);
}

/* Called by ->poll() for each of the file's wait queues. */
static void ev_poll_queue(struct file *file, wait_queue_head_t *head,
			  poll_table *pt)
{
	struct kevent_poll_table *table =
		container_of(pt, struct kevent_poll_table, pt);

	if (!table->queues++)
		table->err = file_wait_join(table->kp, head, table->sock);
	else if (!table->err)
		table->err = ev_poll_join_more(table->kp, head);
}

/* Join the wait queues of the file. Returns what ev_poll_attach() does. */
static int ev_poll_join(struct kevent_poll *kp, struct file *file,
			struct socket *sock, __poll_t keys)
{
	struct kevent_poll_table table = {
		.pt._qproc	= ev_poll_queue,
		.pt._key	= (keys & EV_POLL_EVENTS) | HOST_POLL_EDGE,
		.kp		= kp,
		.sock		= sock,
	};
	struct kevent *ke = &kp->kf.ke;
	__poll_t mask = vfs_poll(file, &table.pt);

	if (table.err)
		return table.err;
	ev_poll_note_device(ke, file);
	/* Most new watches want nothing of the mask. A MODIFY in between checks the file itself. */
	keys = (__force __poll_t)READ_ONCE(ke->keys);
	return mask & keys & EV_POLL_EVENTS || kevent_awaits_empty(ke) ?
	       ev_poll_events(ke, mask) : 0;
}

static int ev_poll_attach(struct kevent *ke, const struct ukevent *uk,
			  struct file *file)
{
	struct kevent_poll *kp = to_poll(ke);
	struct socket *sock = ev_poll_socket(kp, file);
	__poll_t keys = ev_poll_keys(kp, file, sock);
	int err;

	init_waitqueue_func_entry(&kp->wait, ev_poll_wake);
	INIT_LIST_HEAD(&kp->wait.entry);
	WRITE_ONCE(ke->keys, (__force u16)keys);
	if (!(keys & EV_POLL_NESTING))
		/* To the list of watches of the file, under file->f_lock */
		err = kevent_file_link(&kp->kf, file);
	else
		err = HOST_NESTS ? kevent_nest_link(kp, file) : -ELOOP;
	return err ?: ev_poll_join(kp, file, sock, keys);
}

static void ev_poll_detach(struct kevent *ke)
{
	struct kevent_poll *kp = to_poll(ke);
	struct kevent_poll_more *more;

	file_wait_leave(&kp->wait, ev_poll_head(kp));
	for (more = ev_poll_more(kp); more; more = more->next)
		file_wait_leave(&more->wait, &more->wait.private);
	if (HOST_NESTS &&
	    (__force __poll_t)READ_ONCE(ke->keys) & EV_POLL_NESTING)
		kevent_nest_unlink(ke);
}

static void ev_poll_destroy(struct kevent *ke)
{
	struct kevent_poll_more *next, *more = ev_poll_more(to_poll(ke));

	for (; more; more = next) {
		next = more->next;
		kevent_uncharge(ke->queue->owner, sizeof(*more));
		kfree_rcu(more, rcu);
	}
}

static void ev_poll_modified(struct kevent *ke, const struct ukevent *uk)
{
	struct kevent_poll *kp = to_poll(ke);
	struct file *file = kp->kf.file;
	__poll_t keys = ev_poll_keys(kp, file, ev_poll_socket(kp, file));

	WRITE_ONCE(ke->keys, (__force u16)keys);
}

/* Not in line: a poll under the lock needs no stack, 9 instructions of an event. */
static noinline int ev_poll_ask(struct kevent *ke)
{
	__poll_t keys = (__force __poll_t)READ_ONCE(ke->keys);
	poll_table pt = { ._key = keys & EV_POLL_EVENTS };

	return ev_poll_events(ke, vfs_poll(to_poll(ke)->kf.file, &pt));
}

/* deliver.c begins with the reasons for a poll at delivery. */
static int ev_poll_collect(struct kevent *ke, bool atomic)
{
	return atomic ? ev_poll_peek(ke) : ev_poll_ask(ke);
}

/* Checks of requests */

static int ev_poll_check(const struct ukevent *uk, struct file *file)
{
	if (uk->event & ~(__force u32)EV_POLL_EVENTS)
		return -EINVAL;
	return 0;
}

static int ev_socket_check(const struct ukevent *uk, struct file *file)
{
	struct socket *sock;

	if (uk->event & ~(KEVENT_SOCKET_RECV | KEVENT_SOCKET_ACCEPT |
			  KEVENT_SOCKET_SEND | KEVENT_SOCKET_EMPTY))
		return -EINVAL;
	sock = kevent_socket(file);
	if (!sock)
		return -ENOTSOCK;
	if (uk->event & KEVENT_SOCKET_EMPTY && !kevent_sock_knows_empty(sock))
		return -EOPNOTSUPP;
	return 0;
}

static int ev_pipe_check(const struct ukevent *uk, struct file *file)
{
	if (uk->event & ~(KEVENT_SOCKET_RECV | KEVENT_SOCKET_SEND))
		return -EINVAL;
	return host_pipe(file) ? 0 : -EINVAL;
}

#define EV_POLL_FLAGS	(KEVENT_SOURCE_FILE | KEVENT_SOURCE_LEVEL)

#define EV_POLL_OPS(_name, _check)			\
	.name		= _name,			\
	.size		= sizeof(struct kevent_poll),	\
	.check		= _check,			\
	.attach		= ev_poll_attach,		\
	.detach		= ev_poll_detach,		\
	.destroy	= ev_poll_destroy,		\
	.modified	= ev_poll_modified,		\
	.modify_unlocked = file_wait_hand_on,		\
	.collect	= ev_poll_collect

const struct kevent_source_ops kevent_socket_ops = {
	EV_POLL_OPS("socket", ev_socket_check),
	.flags		= EV_POLL_FLAGS,
	.amount		= ev_poll_amount,
};

const struct kevent_source_ops kevent_pipe_ops = {
	EV_POLL_OPS("pipe", ev_pipe_check),
	.flags		= EV_POLL_FLAGS,
};

const struct kevent_source_ops kevent_poll_ops = {
	EV_POLL_OPS("poll", ev_poll_check),
	.flags		= EV_POLL_FLAGS | KEVENT_SOURCE_FOREIGN,
};

static_assert(sizeof(struct kevent_poll) <= 128 + sizeof(struct host_file) ||
	      IS_ENABLED(CONFIG_DEBUG_SPINLOCK));
