// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Signals of the process, which all its queues share
 *
 * A signal that some thread does not block is taken by a handler; one that all threads
 * block is read from a signalfd. So no signal mask is changed. The handler takes no
 * locks: it leaves what it knows where a call finds it, and rings a bell, which the
 * epoll instances of all queues with a SIGNAL watch hear. A call that collects hands the
 * signals out to all of these queues.
 *
 * A signal that no watch wants has the effect that it had before the handler was set.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>

#include "api/process.h"
#include "signal/before.h"
#include "ops.h"
#include "signals.h"
#include "sys.h"

#define FB_CAUGHT_MAX	65536U	/* real-time signals that no call has collected */
#define FB_MAX_KEPT	65536U	/* of a watch */
#define FB_PATIENCE	10000U	/* turns given to handlers that are under way */

/**
 * struct fb_caught - a signal of the handler
 * @si:		what an event says of it
 * @state:	atomic; in the ring the position after it when it is there, else free,
 *		being written or there
 */
struct fb_caught {
	struct fb_siginfo	si;
	__u32			state;
};

enum { FB_FREE_SLOT, FB_WRITTEN_SLOT, FB_FULL_SLOT };

/**
 * struct fb_hub - the signals of a process
 * @lock:	protects all that is not atomic or set once
 * @process:	of kevent_process_mark(), and @pid: vfork() has it share our memory
 * @home:	an epoll instance with @bell and @fd, which knows whether these numbers
 *		are still ours. The three are open while there are @queues; atomic
 * @bell:	an eventfd, edge-triggered in epoll, that is never read
 * @fd:		a signalfd
 * @mask:	the signals it has, bit by bit
 * @forever:	atomic: the signals that the handler takes
 * @once:	atomic: those of which it takes one
 * @catching:	atomic, by signal: handlers that look at @forever and @once, or have taken
 *		a signal that is not there yet
 * @slots:	of each signal one, for standard signals, and where @ring has no room
 * @head:	atomic: position of the oldest in @ring, @tail after the newest
 * @old:	what the program had before the handler
 * @listeners:	watches that are armed, by signal
 * @returned:	signals to be sent again when fewer are pending, the oldest first
 * @others:	a queue other than the one that collects has something new
 * @queues:	how many have the bell
 * @left:	atomic: the child of the process has closed the descriptors
 * @ring:	real-time signals; no page of it is there before it is used
 */
struct fb_hub {
	pthread_mutex_t		lock;
	__u32			process;
	pid_t			pid;
	int			home;
	int			bell;
	int			fd;
	__u64			mask;
	__u64			forever;
	__u64			once;
	__u32			catching[FB_NR_SIGNALS];
	struct fb_caught	slots[FB_NR_SIGNALS];
	__u32			head;
	__u32			tail;
	struct fb_before	old[FB_NR_SIGNALS];
	struct fb_list		listeners[FB_NR_SIGNALS];
	struct fb_list		returned;
	bool			others;
	__u32			queues;
	bool			left;
	struct fb_caught	ring[FB_CAUGHT_MAX];
};

static struct fb_hub *fb_the_hub;

static __u64 fb_bit(__u32 signal)
{
	return 1ULL << (signal - 1);
}

/* Is it that of this process, not of the one that forked it? */
static bool fb_hub_is_ours(const struct fb_hub *hub)
{
	return kevent_process_is(hub->process) &&
	       hub->pid == getpid();
}

pthread_mutex_t *fb_hub_mutex(struct fb_hub *hub)
{
	return &hub->lock;
}

/* The handler: it may interrupt any code, itself included. */

/* Take a place in the ring, if there is one. */
static struct fb_caught *fb_ring_place(struct fb_hub *hub, __u32 *at)
{
	*at = __atomic_load_n(&hub->tail, __ATOMIC_RELAXED);
	do {
		if (*at - __atomic_load_n(&hub->head, __ATOMIC_ACQUIRE) >=
		    FB_CAUGHT_MAX)
			return NULL;
	} while (!__atomic_compare_exchange_n(&hub->tail, at, *at + 1, 0,
					      __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return &hub->ring[*at % FB_CAUGHT_MAX];
}

/* Signals that find their slot full merge with the one in it. */
static void fb_slot_put(struct fb_hub *hub, const struct fb_siginfo *si)
{
	struct fb_caught *slot = &hub->slots[si->signal - 1];
	__u32 state = FB_FREE_SLOT;

	if (!__atomic_compare_exchange_n(&slot->state, &state, FB_WRITTEN_SLOT,
					 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	slot->si = *si;
	__atomic_store_n(&slot->state, FB_FULL_SLOT, __ATOMIC_RELEASE);
}

static void fb_hub_leave(struct fb_hub *hub, const struct fb_siginfo *si)
{
	struct fb_caught *place = NULL;
	__u32 at;

	/* While the slot is in use, the ring has signals that are older. */
	if (si->signal >= FB_SIGRTMIN &&
	    !__atomic_load_n(&hub->slots[si->signal - 1].state,
			     __ATOMIC_RELAXED))
		place = fb_ring_place(hub, &at);
	if (!place) {
		fb_slot_put(hub, si);
		return;
	}
	place->si = *si;
	__atomic_store_n(&place->state, at + 1, __ATOMIC_RELEASE);
}

/* The program may have closed what is not its own, and have another file there. */
static bool fb_hub_has(const struct fb_hub *hub, int fd)
{
	return fb_epoll_has(__atomic_load_n(&hub->home, __ATOMIC_RELAXED), fd);
}

/* By the handler, too: the thread may hold any lock. */
static void fb_hub_ring(const struct fb_hub *hub)
{
	int home = __atomic_load_n(&hub->home, __ATOMIC_RELAXED);
	int bell = __atomic_load_n(&hub->bell, __ATOMIC_RELAXED);
	static const __u64 one = 1;

	if (fb_epoll_probe(home, bell))
		fb_sys(SYS_write, bell, &one, sizeof(one));
}

/* Does a watch want it? If that is for one signal, the next one is not for it. */
static bool fb_hub_wants(struct fb_hub *hub, __u32 signal)
{
	__u64 bit = fb_bit(signal);

	if (__atomic_load_n(&hub->forever, __ATOMIC_SEQ_CST) & bit)
		return true;
	return __atomic_load_n(&hub->once, __ATOMIC_SEQ_CST) & bit &&
	       __atomic_fetch_and(&hub->once, ~bit, __ATOMIC_SEQ_CST) & bit;
}

/* Pairs with fb_hub_await() and fb_hub_open_anew(). */
static bool fb_hub_take(struct fb_hub *hub, const struct fb_siginfo *si)
{
	__u32 *catching = &hub->catching[si->signal - 1];
	bool wants;

	__atomic_add_fetch(catching, 1, __ATOMIC_SEQ_CST);
	wants = fb_hub_wants(hub, si->signal);
	if (wants) {
		fb_hub_leave(hub, si);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		fb_hub_ring(hub);
	}
	__atomic_sub_fetch(catching, 1, __ATOMIC_SEQ_CST);
	return wants;
}

static void fb_catch(int signal, siginfo_t *info, void *context)
{
	struct fb_hub *hub = __atomic_load_n(&fb_the_hub, __ATOMIC_ACQUIRE);
	struct fb_siginfo si = fb_siginfo_of(signal, info);

	if (fb_hub_is_ours(hub) && fb_hub_take(hub, &si) && !si.observed)
		return;
	fb_as_before(&hub->old[signal - 1], signal, info, context);
}

/* Children that nobody waits for send no signal, and are not to send one. */
static int fb_hub_catch(struct fb_hub *hub, __u32 signal)
{
	struct sigaction now;
	int err = fb_call(sigaction((int)signal, NULL, &now));

	if (err || fb_has_handler(&now, fb_catch))
		return err;
	if (signal == SIGCHLD && now.sa_handler == SIG_IGN)
		return 0;
	return fb_before_replace(&hub->old[signal - 1], (int)signal, &now,
				 fb_catch);
}

/* The hub */

static int fb_hub_open_fds(struct fb_hub *hub)
{
	int err;

	err = fb_own(NULL, &hub->home, fb_sys(SYS_epoll_create1, EPOLL_CLOEXEC),
		     "[eventpoll]");
	if (!err)
		err = fb_own(NULL, &hub->bell,
			     fb_sys(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK),
			     "[eventfd]");
	if (!err)
		err = fb_own(NULL, &hub->fd,
			     fb_sys(SYS_signalfd4, -1, &hub->mask,
				    sizeof(hub->mask), SFD_CLOEXEC | SFD_NONBLOCK),
			     "[signalfd]");
	if (!err)
		err = fb_epoll_ctl(hub->home, EPOLL_CTL_ADD, hub->bell, EPOLLONESHOT, 0);
	return err ? err : fb_epoll_ctl(hub->home, EPOLL_CTL_ADD, hub->fd, EPOLLONESHOT, 0);
}

static void fb_hub_close_fds(struct fb_hub *hub)
{
	fb_close_fd(&hub->home);
	fb_close_fd(&hub->bell);
	fb_close_fd(&hub->fd);
}

static bool fb_hub_has_fds(const struct fb_hub *hub)
{
	return fb_hub_has(hub, hub->bell) && fb_hub_has(hub, hub->fd);
}

/*
 * If one of them is not ours, the program has closed it, and may have files of the same
 * kinds by these numbers: all three are forgotten.
 */
static void fb_hub_forget_fds(struct fb_hub *hub)
{
	fb_disown(&hub->home);
	fb_disown(&hub->bell);
	fb_disown(&hub->fd);
}

static void fb_hub_drop_fds(struct fb_hub *hub)
{
	if (fb_hub_has_fds(hub))
		fb_hub_close_fds(hub);
	else
		fb_hub_forget_fds(hub);
}

/* In a child, where it is nobody's. A handler may be reading the rest of it. */
static void fb_hub_let_go(struct fb_hub *hub)
{
	if (!__atomic_exchange_n(&hub->left, true, __ATOMIC_ACQ_REL))
		fb_hub_drop_fds(hub);
}

/* A forked child has the handlers of its parent, and what was there before them. */
static struct fb_hub *fb_hub_new(const struct fb_hub *parent)
{
	struct fb_hub *hub;
	__u32 i;

	hub = mmap(NULL, sizeof(*hub), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (hub == MAP_FAILED)
		return NULL;
	pthread_mutex_init(&hub->lock, NULL);
	hub->home = -1;
	hub->bell = -1;
	hub->fd = -1;
	hub->process = kevent_process_mark();
	hub->pid = getpid();
	for (i = 0; i < FB_NR_SIGNALS; i++)
		fb_list_init(&hub->listeners[i]);
	fb_list_init(&hub->returned);
	if (parent)
		memcpy(hub->old, parent->old, sizeof(hub->old));
	return hub;
}

/* The hub of this process, or NULL without memory. It stays: the handler may run at any time. */
static struct fb_hub *fb_hub_get(void)
{
	struct fb_hub *hub = __atomic_load_n(&fb_the_hub, __ATOMIC_ACQUIRE);
	struct fb_hub *mine;

	if (hub && fb_hub_is_ours(hub))
		return hub;
	mine = fb_hub_new(hub);
	if (!mine)
		return NULL;
	if (__atomic_compare_exchange_n(&fb_the_hub, &hub, mine, 0,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		if (hub)
			fb_hub_let_go(hub);
		return mine;
	}
	munmap(mine, sizeof(*mine));
	return hub;
}

/* Handlers that are under way get through, unless their threads do not run. */
static void fb_hub_await(struct fb_hub *hub, __u32 signal)
{
	__u32 turns = 0;

	/* Pairs with fb_hub_take(). */
	while (__atomic_load_n(&hub->catching[signal - 1], __ATOMIC_SEQ_CST) &&
	       turns++ < FB_PATIENCE)
		sched_yield();
}

/* Queues that had what is no longer ours have lost it. */
static int fb_hub_open_anew(struct fb_hub *hub)
{
	int err;

	fb_hub_forget_fds(hub);
	err = fb_hub_open_fds(hub);
	if (err) {
		fb_hub_close_fds(hub);
		return err;
	}
	/* A handler may have looked for the bell before. Pairs with fb_hub_take(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	fb_hub_collect(hub, NULL);
	return 0;
}

static int fb_hub_add_fds(struct fb_hub *hub, struct fb_queue *q)
{
	int err = fb_register_own(q, hub->bell, EPOLLIN | EPOLLET, FB_OWN_SIGNAL);

	if (err)
		return err;
	err = fb_register_own(q, hub->fd, EPOLLIN, FB_OWN_SIGNAL);
	if (err)
		fb_call(epoll_ctl(q->fd, EPOLL_CTL_DEL, hub->bell, NULL));
	return err;
}

static int fb_hub_add_to(struct fb_hub *hub, struct fb_queue *q)
{
	int err = fb_hub_has_fds(hub) ? 0 : fb_hub_open_anew(hub);

	if (!err)
		err = fb_hub_add_fds(hub, q);
	if (err != -EEXIST)
		return err;
	/* The queue watches one of the numbers, which the program has, as an epoll of its own. */
	err = fb_hub_open_anew(hub);
	return err ? err : fb_hub_add_fds(hub, q);
}

int fb_hub_register(struct fb_queue *q)
{
	if (!q->hub)
		return 0;
	FB_HOLD_HUB(q->hub);
	return fb_hub_add_to(q->hub, q);
}

static void fb_hub_send_returned(struct fb_hub *hub, bool last);

/* Nobody listens, so handlers that begin now do not ring. */
static void fb_hub_close(struct fb_hub *hub)
{
	__u32 signal;

	for (signal = 1; signal <= FB_NR_SIGNALS; signal++)
		fb_hub_await(hub, signal);
	fb_hub_collect(hub, NULL);
	fb_hub_send_returned(hub, true);
	fb_hub_drop_fds(hub);
}

int fb_hub_join(struct fb_queue *q)
{
	struct fb_hub *hub = fb_hub_get();
	int err;

	if (!hub)
		return -ENOMEM;
	FB_HOLD_HUB(hub);
	err = fb_hub_add_to(hub, q);
	if (!err) {
		q->hub = hub;
		hub->queues++;
	} else if (!hub->queues) {
		fb_hub_close(hub);
	}
	return err;
}

/* Close the copies of the descriptors. */
void fb_hub_leave_parent(struct fb_queue *q)
{
	struct fb_hub *hub = __atomic_load_n(&fb_the_hub, __ATOMIC_ACQUIRE);

	if (q->hub && hub && !fb_hub_is_ours(hub))
		fb_hub_let_go(hub);
}

void fb_hub_quit(struct fb_queue *q)
{
	if (!q->hub)
		return;
	FB_HOLD_HUB(q->hub);
	if (!--q->hub->queues)
		fb_hub_close(q->hub);
	q->hub = NULL;
	q->signals = 0;
}

/* Listeners */

static int fb_hub_set_mask(struct fb_hub *hub, __u64 mask)
{
	int ret;

	if (mask == hub->mask)
		return 0;
	if (fb_hub_has(hub, hub->fd)) {
		ret = (int)fb_sys(SYS_signalfd4, hub->fd, &mask, sizeof(mask), 0);
		if (ret < 0)
			return ret;
	}
	hub->mask = mask;
	return 0;
}

static void fb_set_bit(__u64 *mask, __u64 bit, bool on)
{
	if (on)
		__atomic_or_fetch(mask, bit, __ATOMIC_SEQ_CST);
	else
		__atomic_and_fetch(mask, ~bit, __ATOMIC_SEQ_CST);
}

/*
 * Have the handler take the signal for the listeners as they are, or, but for one, as they
 * will be: that one @forever, or @once. A signal that is wanted before and after is wanted in
 * between.
 */
static bool fb_hub_notify_handler(struct fb_hub *hub, __u32 signal,
				  const struct fb_signal *but, bool forever, bool once)
{
	const struct fb_signal *s;

	fb_list_each(s, &hub->listeners[signal - 1], struct fb_signal, link) {
		if (s == but)
			continue;
		forever |= s->listens && !s->once;
		once |= s->listens && s->once;
	}
	if (once)
		fb_set_bit(&hub->once, fb_bit(signal), true);
	fb_set_bit(&hub->forever, fb_bit(signal), forever);
	if (!once)
		fb_set_bit(&hub->once, fb_bit(signal), false);
	return forever || once;
}

/* The listeners of a signal have changed. */
static int fb_hub_update(struct fb_hub *hub, __u32 signal)
{
	__u64 bit = fb_bit(signal);
	int err;

	if (fb_hub_notify_handler(hub, signal, NULL, false, false)) {
		err = fb_hub_catch(hub, signal);
		return err ? err : fb_hub_set_mask(hub, hub->mask | bit);
	}
	fb_before_restore(&hub->old[signal - 1], (int)signal, fb_catch);
	return fb_hub_set_mask(hub, hub->mask & ~bit);
}

/*
 * A listener changes. Hand out the signals that the handler has taken for it as it was: once
 * the handlers under way have ended, no handler takes more of them. For handlers that have not
 * ended, see fb_hub_give_back().
 */
static void fb_hub_settle(struct fb_hub *hub, const struct fb_signal *s, bool forever, bool once)
{
	__u32 signal = (__u32)s->w.key;

	if (s->listens) {
		fb_hub_notify_handler(hub, signal, s, forever, once);
		fb_hub_await(hub, signal);
	}
	fb_hub_collect(hub, NULL);
}

int fb_hub_listen(struct fb_signal *s)
{
	bool once = s->w.req_flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH);
	__u32 signal = (__u32)s->w.key;
	struct fb_hub *hub = s->q->hub;

	FB_HOLD_HUB(hub);
	if (fb_list_empty(&s->link))
		fb_list_add_tail(&s->link, &hub->listeners[signal - 1]);
	fb_hub_settle(hub, s, !once, once);
	s->listens = true;
	s->once = once;
	return fb_hub_update(hub, signal);
}

void fb_hub_ignore(struct fb_signal *s)
{
	struct fb_hub *hub = s->q->hub;

	FB_HOLD_HUB(hub);
	if (s->listens)
		fb_hub_settle(hub, s, false, false);
	fb_list_del(&s->link);
	fb_list_init(&s->link);
	s->listens = false;
	fb_hub_update(hub, (__u32)s->w.key);
}

/* Handing out */

static int fb_send_again(const struct fb_siginfo *si)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = (int)si->signal;
	info.si_code = (int)si->code;
	info.si_pid = (pid_t)si->pid;
	info.si_uid = si->uid;
	info.si_value.sival_int = (int)si->value;
	return (int)fb_sys(SYS_rt_sigqueueinfo, getpid(), si->signal, &info);
}

/*
 * As it was, which may take room, and of some only the first thread may say who sent
 * them: without that rather than never, and at the @last call in any case.
 */
static void fb_hub_send_returned(struct fb_hub *hub, bool last)
{
	struct fb_kept *first;
	int err;

	while (!fb_list_empty(&hub->returned)) {
		first = fb_container(hub->returned.next, struct fb_kept, link);
		err = fb_send_again(&first->si);
		if (err == -EAGAIN && !last)
			return;
		if (err)
			fb_sys(SYS_kill, getpid(), first->si.signal);
		fb_list_del(&first->link);
		free(first);
	}
}

/*
 * The watch that wanted it has got another one, by the signalfd, or has gone, while a
 * thread that does not run had the handler: the signal has its effect.
 */
static void fb_hub_give_back(struct fb_hub *hub, const struct fb_siginfo *si)
{
	struct fb_kept *last = malloc(sizeof(*last));

	if (!last) {
		fb_sys(SYS_kill, getpid(), si->signal);
		return;
	}
	last->si = *si;
	fb_list_add_tail(&last->link, &hub->returned);
	fb_hub_send_returned(hub, false);
}

/* Standard signals merge, and so do others when there is no memory. */
static void fb_hub_keep(struct fb_signal *s, const struct fb_siginfo *si)
{
	struct fb_kept *kept = NULL;

	s->q->signals |= fb_bit(si->signal);
	if (si->signal >= FB_SIGRTMIN && s->nr < FB_MAX_KEPT)
		kept = malloc(sizeof(*kept));
	if (!kept && s->nr)
		return;
	if (!kept)
		kept = &s->spare;
	kept->si = *si;
	fb_list_add_tail(&kept->link, &s->kept);
	__atomic_store_n(&s->nr, s->nr + 1, __ATOMIC_RELAXED);
}

static void fb_hub_hand_out(struct fb_hub *hub, const struct fb_queue *q,
			    const struct fb_siginfo *si)
{
	bool wanted = false, spent = false;
	struct fb_signal *s;

	fb_list_each(s, &hub->listeners[si->signal - 1], struct fb_signal, link) {
		if (!s->listens)
			continue;
		wanted = true;
		s->listens = !s->once;
		spent |= s->once;
		hub->others |= s->q != q;
		fb_hub_keep(s, si);
	}
	if (spent)
		fb_hub_update(hub, si->signal);
	if (!wanted && !si->observed)
		fb_hub_give_back(hub, si);
}

static void fb_hub_empty_ring(struct fb_hub *hub, const struct fb_queue *q)
{
	struct fb_caught *caught;
	struct fb_siginfo si;
	__u32 head = hub->head;

	for (;;) {
		caught = &hub->ring[head % FB_CAUGHT_MAX];
		if (__atomic_load_n(&caught->state, __ATOMIC_ACQUIRE) != head + 1)
			return;
		si = caught->si;
		__atomic_store_n(&hub->head, ++head, __ATOMIC_RELEASE);
		fb_hub_hand_out(hub, q, &si);
	}
}

static void fb_hub_empty_slots(struct fb_hub *hub, const struct fb_queue *q)
{
	struct fb_caught *slot = hub->slots;
	struct fb_siginfo si;

	for (; slot < hub->slots + FB_NR_SIGNALS; slot++) {
		if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) !=
		    FB_FULL_SLOT)
			continue;
		si = slot->si;
		__atomic_store_n(&slot->state, FB_FREE_SLOT, __ATOMIC_RELEASE);
		fb_hub_hand_out(hub, q, &si);
	}
}

/* One at a time: the first may be the last that is wanted. */
static void fb_hub_read(struct fb_hub *hub, const struct fb_queue *q)
{
	struct signalfd_siginfo info;
	struct fb_siginfo si = { .observed = false };

	if (!fb_hub_has(hub, hub->fd))
		return;
	while (fb_sys(SYS_read, hub->fd, &info, sizeof(info)) == sizeof(info)) {
		si.signal = info.ssi_signo;
		si.code = (__u32)info.ssi_code;
		si.value = (__u32)info.ssi_int;
		si.pid = info.ssi_pid;
		si.uid = info.ssi_uid;
		fb_hub_hand_out(hub, q, &si);
	}
}

void fb_hub_collect(struct fb_hub *hub, struct fb_queue *q)
{
	hub->others = false;
	fb_hub_send_returned(hub, false);
	fb_hub_empty_ring(hub, q);
	fb_hub_empty_slots(hub, q);
	fb_hub_read(hub, q);
	if (hub->others)
		fb_hub_ring(hub);
}
