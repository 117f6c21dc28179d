// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets, pipes and all other files one can poll, by their wait queues
 */

#include <linux/cleanup.h>
#include <linux/eventfd.h>
#include <linux/init.h>
#include <linux/kevent.h>
#include <linux/net.h>
#include <linux/pipe_fs_i.h>
#include <linux/poll.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "kevent.h"
#include "turns.h"

/*
 * In kevent.keys: the keys of wake-ups tell all there is to report, and these
 * come with interrupts off. Those of sockets, pipes and eventfds name what has
 * become true. Other files may not do that, or may need a ->poll() to arm the
 * next wake-up.
 */
#define EV_POLL_EXACT	((__force __poll_t)BIT(15))

/* In kevent.keys: there may be an amount to tell, or a device queue to note */
#define EV_POLL_EXTRA	((__force __poll_t)BIT(11))

/*
 * Wake-up keys name these with too much in them, or stand for a change that
 * only ->poll() can tell: who asks for one of them is verified.
 */
#define EV_POLL_INEXACT	(EPOLLPRI | EPOLLRDBAND | EPOLLWRBAND | EPOLLRDHUP)

struct kmem_cache *kevent_poll_cache;

static struct kevent_poll *to_poll(struct kevent *ke)
{
	return container_of(ke, struct kevent_poll, kf.ke);
}

/* Masks of poll() and events of a type */

#ifdef CONFIG_EVENTFD
static bool ev_poll_is_eventfd(struct file *file)
{
	struct eventfd_ctx *ctx = eventfd_ctx_fileget(file);

	if (IS_ERR(ctx))
		return false;
	eventfd_ctx_put(ctx);
	return true;
}
#else
static bool ev_poll_is_eventfd(struct file *file)
{
	return false;
}
#endif

static bool ev_poll_is_exact(struct file *file)
{
	return get_pipe_info(file, false) || ev_poll_is_eventfd(file);
}

static bool ev_poll_has_extra(const struct kevent *ke,
			      const struct socket *sock)
{
	return sock->ops->family != AF_UNIX || (ke->type == KEVENT_SOCKET &&
						ke->event & KEVENT_SOCKET_ACCEPT);
}

static __poll_t ev_poll_keys(const struct kevent_poll *kp,
			     struct file *file)
{
	struct socket *sock = kevent_socket(file);
	u32 event = kp->kf.ke.event;
	__poll_t keys = EV_POLL_ALWAYS;

	if (kp->kf.ke.type == KEVENT_POLL)
		keys |= (__force __poll_t)event;
	if (!(keys & EV_POLL_INEXACT) &&
	    (sock || kp->kf.ke.type == KEVENT_PIPE || ev_poll_is_exact(file)))
		keys |= EV_POLL_EXACT;
	if (sock && ev_poll_has_extra(&kp->kf.ke, sock))
		keys |= EV_POLL_EXTRA;
	if (kp->kf.ke.type == KEVENT_POLL)
		return keys;
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

/* Conditions that ev_peek.c says nothing of */
#define EV_POLL_UNSEEN	(EV_POLL_EVENTS & ~(EPOLLIN | EPOLLRDNORM |	\
					    EPOLLRDHUP | EV_POLL_ALWAYS))

/* The file exists: its end has to wait until the watch is dead. */
static int ev_poll_peek(struct kevent *ke)
{
	__poll_t keys = (__force __poll_t)READ_ONCE(ke->keys);
	struct file *file = to_poll(ke)->kf.file;
	struct pipe_inode_info *pipe;
	struct socket *sock;
	int ret = -1;

	if (keys & EV_POLL_UNSEEN)
		return -1;
	sock = kevent_socket(file);
	pipe = sock ? NULL : get_pipe_info(file, false);
	if (sock && sock->sk)
		ret = ev_peek_sock(sock);
	else if (pipe)
		ret = ev_peek_pipe(pipe, file->f_mode);
	return ret > 0 ? ev_poll_events(ke, (__force __poll_t)ret) : ret;
}

/* Amounts */

/*
 * What can be told of a socket without its lock: connections waiting, or bytes
 * of a TCP stream. A hint, which may be old when it arrives.
 */
static u32 ev_sock_amount(struct sock *sk, u32 ready)
{
	if (READ_ONCE(sk->sk_state) == TCP_LISTEN)
		return sk->sk_family == AF_UNIX ?
		       skb_queue_len_lockless(&sk->sk_receive_queue) :
		       READ_ONCE(sk->sk_ack_backlog);
	if (!(ready & KEVENT_SOCKET_RECV) || !sk_is_tcp(sk))
		return 0;
	/* Old sequence numbers make a wrong amount, nothing worse. */
	return max(data_race(tcp_inq(sk)), 0);
}

/*
 * The file exists, see kevent_file_hold(), and ->release() is yet to come: it
 * has to wait until the watch is dead. So the socket and its sock exist too.
 */
static u32 ev_socket_amount(struct kevent *ke, u32 ready)
{
	struct socket *sock;

	if (!(ready & (KEVENT_SOCKET_RECV | KEVENT_SOCKET_ACCEPT)))
		return 0;
	sock = kevent_socket(to_poll(ke)->kf.file);
	return sock && sock->sk ? ev_sock_amount(sock->sk, ready) : 0;
}

/* Wake-ups */

/* What a key means that tells all there is to report */
static u32 ev_poll_key_events(const struct kevent *ke, __poll_t key)
{
	u32 bits = (__force u32)key;

	if (ke->type == KEVENT_POLL)
		return bits;
	/* EPOLLRDNORM is as good as EPOLLIN, EPOLLWRNORM as EPOLLOUT. */
	bits = (bits | bits >> 6) & (KEVENT_SOCKET_RECV | KEVENT_SOCKET_SEND);
	return bits | (bits & KEVENT_SOCKET_RECV) * KEVENT_SOCKET_ACCEPT;
}

/* Does a key tell all there is to report? */
static bool ev_poll_key_suffices(__poll_t keys, __poll_t key)
{
	return keys & EV_POLL_EXACT && key && !(key & EV_POLL_ALWAYS);
}

static void ev_poll_note_device(struct kevent *ke, struct file *file)
{
	struct kevent_busy *busy = &ke->queue->busy;
	struct socket *sock;

	if (!kevent_busy_on(busy))
		return;
	sock = kevent_socket(file);
	if (sock && sock->sk)
		kevent_busy_note(busy, sock->sk);
}

/*
 * What a wake-up says to a watch, and an amount to go with it; 0 when it has to be
 * looked up
 */
static __always_inline u32 ev_poll_told(struct kevent *ke, __poll_t key,
					u32 *amount)
{
	__poll_t keys = (__force __poll_t)READ_ONCE(ke->keys);
	u32 events;

	*amount = 0;
	if (!ev_poll_key_suffices(keys, key))
		return 0;
	events = ev_poll_key_events(ke, key);
	if (ke->type == KEVENT_SOCKET && keys & EV_POLL_EXTRA &&
	    kevent_may_store(ke))
		*amount = ev_socket_amount(ke, events);
	return events;
}

/**
 * ev_poll_fire - a wake-up is for a watch
 * @ke: the watch; the lock of the wait queue is held
 * @key: what has become true, 0 if it does not say
 */
void ev_poll_fire(struct kevent *ke, __poll_t key)
{
	__poll_t keys = (__force __poll_t)READ_ONCE(ke->keys);
	u32 events, amount;

	if (key && !(key & keys))
		return;
	ev_poll_note_device(ke, to_poll(ke)->kf.file);
	events = ev_poll_told(ke, key, &amount);
	/* What becomes true after a look has a wake-up of its own. */
	if (events)
		kevent_ready_amount(ke, events, amount);
	else if (key || ev_poll_peek(ke))
		kevent_ready(ke, 0, KE_VERIFY);
}

/**
 * ev_poll_offer - tell a watch something that others are not told then
 * @ke: the watch; the lock of the wait queue is held
 * @wanted: conditions it was seen to be interested in
 * @key: of the wake-up; 0: some time ago they were true
 *
 * Return: false when others have to be told, too.
 */
bool ev_poll_offer(struct kevent *ke, __poll_t wanted, __poll_t key)
{
	u32 events, amount;

	ev_poll_note_device(ke, to_poll(ke)->kf.file);
	events = ev_poll_told(ke, key, &amount);
	if (!key && !ev_poll_peek(ke))
		return true;
	return kevent_offer(ke, (__force u16)wanted, events, amount);
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

static noinline int ev_poll_wake_slow(struct kevent_poll *kp, __poll_t key)
{
	struct wait_queue_head *head = *ev_poll_head(kp);

	if (unlikely(key & POLLFREE))
		ev_poll_orphan(&kp->kf.ke, &kp->wait, ev_poll_head(kp));
	else if (!key || key & EV_POLL_ALWAYS ||
		 list_is_singular(&head->head))
		ev_poll_fire(&kp->kf.ke, key);
	else
		kevent_turns_wake(kp, head, key);
	return 1;
}

/**
 * ev_poll_wake - callback of the first wait queue of a file
 * @wait: the entry; the lock of the wait queue is held, interrupts are off
 * @mode: not used
 * @sync: not used
 * @key: what has become true, if the wake-up says it
 *
 * Return: 1.
 */
int ev_poll_wake(wait_queue_entry_t *wait, unsigned int mode, int sync,
		 void *key)
{
	struct kevent_poll *kp = container_of(wait, struct kevent_poll, wait);
	__poll_t keys = (__force __poll_t)READ_ONCE(kp->kf.ke.keys);
	__poll_t mask = key_to_poll(key);

	/* Alone in the wait queue, and all said */
	if (unlikely(wait->entry.next != wait->entry.prev || mask & POLLFREE ||
		     keys & EV_POLL_EXTRA || !ev_poll_key_suffices(keys, mask)))
		return ev_poll_wake_slow(kp, mask);
	if (!(mask & keys))
		return 1;
	return kevent_ready_now(&kp->kf.ke,
				ev_poll_key_events(&kp->kf.ke, mask));
}

/* The key of sock_def_readable() */
#define EV_POLL_READABLE	(EPOLLIN | EPOLLPRI | EPOLLRDNORM | EPOLLRDBAND)

/**
 * kevent_wake_sock - data has come for a watch that is alone in a wait queue
 * @wait: its entry
 * @sk: the socket
 *
 * The lock of the wait queue is not held: the watch may be dead and detached,
 * when kevent_ready() and its like do nothing, but exists, because of RCU. Its
 * file need not.
 *
 * Return: false when that takes a wake-up.
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
		if (ke->type == KEVENT_SOCKET && kevent_may_store(ke))
			amount = ev_sock_amount(sk, events);
	}
	kevent_ready_irqs_on(ke, events, amount);
	return true;
}

/**
 * ev_poll_wake_more - callback of further wait queues
 * @wait: the entry; the lock of the wait queue is held, interrupts are off
 * @mode: not used
 * @sync: not used
 * @key: what has become true, if the wake-up says it
 *
 * Return: 1.
 */
int ev_poll_wake_more(wait_queue_entry_t *wait, unsigned int mode, int sync,
		      void *key)
{
	struct kevent_poll_more *more =
		container_of(wait, struct kevent_poll_more, wait);
	__poll_t mask = key_to_poll(key);

	if (unlikely(mask & POLLFREE))
		ev_poll_orphan(&more->kp->kf.ke, wait, &wait->private);
	else
		ev_poll_fire(&more->kp->kf.ke, mask);
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
	if (wait->func == ev_poll_wake && wait->flags & EV_POLL_TIES)
		kevent_turns_leave(container_of(wait, struct kevent_poll, wait),
				   head);
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

/*
 * Move the head of kp->wait to @more. POLLFREE may clear it, under its lock, and
 * others look for it.
 */
static void ev_poll_tag(struct kevent_poll *kp, struct kevent_poll_more *more)
{
	void *tagged = (void *)((unsigned long)more | EV_POLL_MORE);
	wait_queue_head_t *head;
	unsigned long flags;

	guard(rcu)();
	/* Pairs with ev_poll_orphan(). */
	head = smp_load_acquire(&kp->wait.private);
	if (!head) {
		/* Pairs with ev_poll_more(). */
		smp_store_release(&kp->wait.private, tagged);
		return;
	}
	spin_lock_irqsave(&head->lock, flags);
	more->head = kp->wait.private;
	/* Pairs with ev_poll_more() and head_of(). */
	smp_store_release(&kp->wait.private, tagged);
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
	INIT_LIST_HEAD(&more->wait.entry);
	if (first) {
		more->next = first->next;
		first->next = more;
	} else {
		ev_poll_tag(kp, more);
	}
	return kevent_turns_join_more(more, head);
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
	if (table->queues++)
		table->err = ev_poll_queue_more(kp, head);
	else
		table->err = kevent_turns_join(kp, head, kevent_socket(file));
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
	ke->keys = (__force u16)ev_poll_keys(kp, file);
	err = kevent_file_link(&kp->kf, file);
	if (err)
		return err;
	init_poll_funcptr(&table.pt, ev_poll_queue);
	table.pt._key = (__force __poll_t)ke->keys & EV_POLL_EVENTS;
	mask = vfs_poll(file, &table.pt);
	if (table.err)
		return table.err;
	if (!kevent_file_is_current(&kp->kf))
		return -EBADF;
	ev_poll_note_device(ke, file);
	return ev_poll_events(ke, mask);
}

static void ev_poll_detach(struct kevent *ke)
{
	struct kevent_poll *kp = to_poll(ke);
	struct kevent_poll_more *more;

	kevent_file_unlink(&kp->kf);
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

static void ev_poll_modified(struct kevent *ke, const struct ukevent *uk)
{
	struct kevent_poll *kp = to_poll(ke);

	WRITE_ONCE(ke->keys, (__force u16)ev_poll_keys(kp, kp->kf.file));
}

static void ev_poll_hand_on(struct kevent *ke)
{
	kevent_turns_hand_on(to_poll(ke));
}

static u32 ev_poll_collect(struct kevent *ke)
{
	__poll_t keys = (__force __poll_t)READ_ONCE(ke->keys);
	poll_table pt = { ._key = keys & EV_POLL_EVENTS };

	return ev_poll_events(ke, vfs_poll(to_poll(ke)->kf.file, &pt));
}

/* What may be watched */

static int ev_poll_check(const struct ukevent *uk, struct file *file)
{
	if (uk->event & ~(__force u32)EV_POLL_EVENTS)
		return -EINVAL;
	return kevent_file_check_nesting(file);
}

static int ev_socket_check(const struct ukevent *uk, struct file *file)
{
	if (uk->event & ~(KEVENT_SOCKET_RECV | KEVENT_SOCKET_ACCEPT |
			  KEVENT_SOCKET_SEND))
		return -EINVAL;
	if (kevent_socket(file))
		return 0;
	return kevent_file_check_nesting(file) ?: -ENOTSOCK;
}

static int ev_pipe_check(const struct ukevent *uk, struct file *file)
{
	if (uk->event & ~(KEVENT_SOCKET_RECV | KEVENT_SOCKET_SEND))
		return -EINVAL;
	/* There are FIFOs that are no pipes, as in rpc_pipefs. */
	if (get_pipe_info(file, false))
		return 0;
	return kevent_file_check_nesting(file) ?: -EINVAL;
}

#define EV_POLL_OPS(_name, _check)			\
	.name		= _name,			\
	.file		= true,				\
	.mergeable	= true,				\
	.level		= true,				\
	.cache		= &kevent_poll_cache,		\
	.check		= _check,			\
	.attach		= ev_poll_attach,		\
	.detach		= ev_poll_detach,		\
	.destroy	= ev_poll_destroy,		\
	.modified	= ev_poll_modified,		\
	.hand_on	= ev_poll_hand_on,		\
	.find		= kevent_file_find,		\
	.hold		= kevent_file_hold,		\
	.unhold		= kevent_file_unhold,		\
	.collect	= ev_poll_collect,		\
	.peek		= ev_poll_peek

const struct kevent_source_ops kevent_socket_ops = {
	EV_POLL_OPS("socket", ev_socket_check),
	.amount		= ev_socket_amount,
};

const struct kevent_source_ops kevent_pipe_ops = {
	EV_POLL_OPS("pipe", ev_pipe_check),
};

const struct kevent_source_ops kevent_poll_ops = {
	EV_POLL_OPS("poll", ev_poll_check),
};

static int __init ev_poll_init(void)
{
	BUILD_BUG_ON(offsetof(struct kevent_poll, kf.ke));
	BUILD_BUG_ON((__force u32)EV_POLL_EVENTS &
		     (__force u32)(EV_POLL_EXACT | EV_POLL_EXTRA));
	/* For ev_poll_key_events() */
	BUILD_BUG_ON(KEVENT_SOCKET_RECV != (__force u32)EPOLLIN ||
		     KEVENT_SOCKET_SEND != (__force u32)EPOLLOUT);
	BUILD_BUG_ON((__force u32)EPOLLRDNORM >> 6 != KEVENT_SOCKET_RECV ||
		     (__force u32)EPOLLWRNORM >> 6 != KEVENT_SOCKET_SEND);
	BUILD_BUG_ON(sizeof(struct kevent_poll) > 128 &&
		     !IS_ENABLED(CONFIG_DEBUG_SPINLOCK));
	kevent_poll_cache = KMEM_CACHE(kevent_poll, SLAB_HWCACHE_ALIGN |
				       SLAB_PANIC | SLAB_ACCOUNT);
	return 0;
}
core_initcall(ev_poll_init);
