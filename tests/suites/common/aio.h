/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites of asynchronous chains share: raw system calls, entries, events
 */
#ifndef AIO_H
#define AIO_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "helpers.h"
#include "pairs.h"

#define COOKIE		0x1234567890abcdefull

static inline long submit(int kq, struct kevent_call *chain, uint32_t nr,
			  uint64_t cookie)
{
	long ret = raw_kevent(__NR_kevent_call, kq, chain, nr, KEVENT_CALL_ASYNC,
			      cookie);

	return ret < 0 ? -errno : ret;
}

/* ms < 0: without a limit */
static inline long serve(int kq, uint32_t limit, int64_t ms)
{
	struct timespec ts = ms_to_timespec(ms < 0 ? 0 : ms);
	long ret = raw_kevent(__NR_kevent_wait, kq, limit, 0, ms < 0 ? NULL : &ts,
			      KEVENT_FLAGS_SERVE, NULL);

	return ret < 0 ? -errno : ret;
}

/* An entry that goes on with the next one after any result */
static inline struct kevent_call entry(uint32_t nr, uint64_t a, uint64_t b,
				       uint64_t c)
{
	return (struct kevent_call){
		.nr = nr, .on_error = 1, .on_zero = 1, .on_value = 1,
		.result = UNMADE, .args = { a, b, c },
	};
}

static inline void set_chain(struct ukevent *uk,
			     const struct kevent_call *chain, uint32_t nr,
			     uint64_t cookie)
{
	*uk = (struct ukevent){
		.id.raw_u64 = KEVENT_ARG(chain), .type = KEVENT_AIO,
		.event = KEVENT_AIO_DONE, .ret_data = { nr }, .ptr = cookie,
	};
}

#define ENTRY(nr, a, b, c) \
	entry(nr, KEVENT_ARG(a), KEVENT_ARG(b), KEVENT_ARG(c))
/* The same, but the first argument is the result of the entry @back entries back. */
#define BACK(nr, back, b, c) ({						\
	struct kevent_call entry_ = ENTRY(nr, back, b, c);		\
									\
	entry_.flags = KEVENT_CALL_BACK(0);				\
	entry_; })
#define GETPPID	ENTRY(SYS_getppid, 0, 0, 0)

static inline int64_t result_of(const struct ukevent *ev)
{
	return (int64_t)((uint64_t)ev->ret_data[1] << 32 | ev->ret_data[0]);
}

static inline void check_done(const struct ukevent *ev, uint64_t cookie,
			      uint64_t id, int64_t result)
{
	CHECK_EQ(ev->type, KEVENT_AIO);
	CHECK_EQ(ev->event, KEVENT_AIO_DONE);
	CHECK_EQ(ev->ptr, cookie);
	CHECK_EQ(ev->id.raw_u64, id);
	CHECK_EQ(result_of(ev), result);
	CHECK_EQ(ev->ret_flags, KEVENT_RET_DONE);
}

static inline bool is_made(const struct kevent_call *c)
{
	return __atomic_load_n(&c->result, __ATOMIC_SEQ_CST) != UNMADE;
}

/* The result of the first entry says that a thread has begun with the chain. */
static inline void await_made(const struct kevent_call *c)
{
	uint64_t start = now_ns();

	while (!is_made(c))
		MUST(patient(start, PATIENCE_MS));
}

/* A pipe whose reader waits */
static inline void open_blocking_pipe(int fd[2])
{
	MUST_EQ(pipe2(fd, O_CLOEXEC), 0);
}

/* Submits one entry, which must not be made in the caller. */
static inline void check_blocks(struct queue *q, struct kevent_call c)
{
	struct ukevent ev;

	CHECK_EQ(submit(q->fd, &c, 1, COOKIE), SUBMITTED);
	CHECK_EQ(c.result, UNMADE);
	set_chain(&ev, NULL, 1, COOKIE);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_REMOVE, &ev), 0);
	MUST_EVENT(q, &ev);
	check_done(&ev, COOKIE, REFUSED, -ECANCELED);
}

#endif /* AIO_H */
