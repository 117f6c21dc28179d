/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites share: checks, queues, waiters, states of threads
 *
 * Checks belong to the main thread of a test: a failed MUST() leaves the test
 * by longjmp(). Other threads hand back values for the main thread to check.
 */
#ifndef HELPERS_H
#define HELPERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <CUnit/CUnit.h>
#include <libkevent.h>

#include "short.h"
#include "suites.h"

#ifndef __NR_kevent_init
#define __NR_kevent_init	480
#define __NR_kevent_ctl		481
#define __NR_kevent_get_events	482
#define __NR_kevent_wait	483
#define __NR_kevent_commit	484
#endif
#ifndef __NR_kevent_call
#define __NR_kevent_call	485
#endif

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Checks: CHECK goes on after a failure, MUST ends the test. */

bool check_true(bool ok, const char *what, const char *file, int line,
		bool fatal);
bool check_equal(long long got, long long want, const char *what,
		 const char *file, int line, bool fatal);

#define CHECK(cond)	check_true((cond), #cond, __FILE__, __LINE__, false)
#define MUST(cond)	check_true((cond), #cond, __FILE__, __LINE__, true)
#define CHECK_EQ(got, want) \
	check_equal((long long)(got), (long long)(want), \
		    #got " == " #want, __FILE__, __LINE__, false)
#define MUST_EQ(got, want) \
	check_equal((long long)(got), (long long)(want), \
		    #got " == " #want, __FILE__, __LINE__, true)

/* Adds a line to the report of the test, whether it fails or not. */
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * The seed of a random test, KEVENT_TEST_SEED or a new one; the report has it.
 */
uint64_t test_seed(void);
uint32_t next_random(uint64_t *state);

/* The kernel: base, debug (also PREEMPT_RT and KCSAN) or gcov, as --kconfig says */
extern const char *kconfig;

/* Time */

/* How much slower than the plain kernel this one may be. */
extern unsigned int slowness;

#define PATIENCE_MS	15000	/* for a state that will come */

uint64_t now_ns(void);
/* Is the kernel one with PREEMPT_RT? */
bool preempt_rt(void);
struct timespec ms_to_timespec(int64_t ms);
/*
 * Returns true until @ms * slowness have passed since @start; yields the CPU.
 */
bool patient(uint64_t start, unsigned int ms);

/* Budget of a storm: KEVENT_STORM_SECONDS in the environment, or 2.5 s */
uint64_t storm_ns(void);
/*
 * Does a storm that began at @start go on? It does after its time, too, until it has seen
 * @enough, for PATIENCE_MS * slowness: how fast a machine is decides no test.
 */
bool storm_goes_on(uint64_t start, bool enough);
void pause_us(unsigned int us);
int64_t clock_ns(clockid_t clock);
bool two_cpus(void);		/* notes if there is one only */

/* Files */

void open_pipe(int fd[2]);	/* non-blocking, close-on-exec */
/* A timerfd that has expired: ready, as only its ->poll() knows */
int open_expired_timer(void);
void open_fds(unsigned int nr);	/* raises RLIMIT_NOFILE to @nr */
unsigned int count_fds(void);	/* that are open, and what it needs itself */
void put_byte(int fd);
unsigned int take_bytes(int fd);	/* reads until the file is empty */
void write_file(const char *path, const char *text);
void read_file(const char *path, char *buf, size_t size);
/* Passes a descriptor over a socket, the way another program would. */
void send_fd(int sock, int fd);
int receive_fd(int sock);

/* Mounts a tmpfs that only this test sees, and makes it the working directory. */
void enter_tmpfs(void);

/* Queues */

/* The library makes queues of epoll, see kevent_fallback(7). */
bool on_fallback(void);
/*
 * Are the queues of this machine those of the module? main() asks before there are tests, which
 * may not be able to find out.
 */
bool on_module(void);
/* The library keeps the device open, and that the module. It opens it again when it has to. */
void close_device(void);
/* Is a name among @tests, between spaces? */
bool is_among(const char *tests, const char *name);

/*
 * A call of kevent past the library, as by syscall(): on the module by an ioctl, where that
 * has it. Arguments may be left out.
 */
#define RAW_KEVENT(nr, a, b, c, d, e, f, ...)				\
	raw_kevent6((nr), (long)(a), (long)(b), (long)(c), (long)(d),	\
		    (long)(e), (long)(f))
#define raw_kevent(nr, ...)	RAW_KEVENT(nr, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
long raw_kevent6(long nr, long a, long b, long c, long d, long e, long f);

struct queue {
	int			fd;
	uint32_t		size;	/* 0: no ring */
	struct kevent_ring	*ring;
	size_t			bytes;	/* of the mapping at ring */
};

void open_queue(struct queue *q, uint32_t size);	/* with init_flags, of the suite */
extern unsigned int init_flags;
/* With a ring of 16, and KEVENT_REFUSE bits */
void open_refusing(struct queue *q, uint32_t refusals);
void close_queue(struct queue *q);
/* Runs @fn with a queue without a ring, then with one. */
void each_queue(void (*fn)(struct queue *q));

/* ms < 0: without a limit */
int get_events(int kq, uint32_t min_nr, uint32_t max_nr, int64_t ms,
	       struct ukevent *ev);
/* Passes what the ring says now as old_kidx. */
int wait_ring(struct queue *q, uint32_t num, int64_t ms);
/*
 * Takes one event from the ring or by get_events(): 1, 0 after @ms, or -errno.
 */
int next_event(struct queue *q, struct ukevent *ev, int64_t ms);
/* The next event of a ring. If it is not in the ring, KEVENT_RING_MORE says that there is one. */
void take_announced(struct queue *q, struct ukevent *ev);
/* An actor: what a call on queue *@kq returns that takes one event, but does not wait */
long collect_one(void *kq);
/* Do events wait in the kernel, as the ring says? */
bool has_more(struct queue *q);
void await_more(struct queue *q);
/* Attaches the ring in this process. */
int attach_ring(struct queue *q);
/* Makes the page with the positions present and writable. */
void touch_ring(struct queue *q);
/* Takes all events there are without waiting; counts them by ev->ptr < nr. */
unsigned int drain(struct queue *q, unsigned int *counts, unsigned int nr);

/* 0, 1 = handed back because ready at once, or -errno */
int add_pipe(int kq, int fd, uint32_t event, uint32_t flags, uint64_t user);
int add_poll(int kq, int fd, uint32_t event, uint32_t flags, uint64_t user);
int add_socket(int kq, int fd, uint32_t event, uint32_t flags, uint64_t user);
int add_user(int kq, uint64_t id, uint32_t event, uint32_t flags,
	     uint64_t user);
/* 0 or -errno */
int create_posix_timer(int kq);
int try_ioctl(int fd, unsigned long cmd, void *arg);
int remove_file(int kq, uint32_t type, int fd);
int mark_user(int kq, uint64_t id, uint32_t event);

/* A number in /proc/self/fdinfo/<kq>, -1 if it isn't there */
long long fdinfo(int kq, const char *key);

#define CHECK_NO_EVENT(q)						\
	do {								\
		struct ukevent none;					\
									\
		CHECK_EQ(next_event(q, &none, 0), 0);			\
	} while (0)

#define MUST_EVENT(q, ev) \
	MUST_EQ(next_event(q, ev, PATIENCE_MS * slowness), 1)

/* Threads and processes */

/* The signal interrupts, and does nothing else. */
void catch_signal(int sig);

/* As /proc/TID/stat has it, '?' if there is no such thread */
char task_state(pid_t tid);
/*
 * Blocks until the thread sleeps in system call @nr, or what is done in the place of one of
 * kevent; false if it does not.
 */
bool sleeps_in(pid_t tid, long nr);
/* Returns true if the thread sleeps in system call @nr now. */
bool is_asleep_in(pid_t tid, long nr);
/* How often the thread has gone to sleep so far */
long long sleeps_so_far(pid_t tid);

struct actor {
	pthread_t	thread;
	_Atomic pid_t	tid;
	long		(*fn)(void *arg);
	void		*arg;
	long		ret;	/* of fn, after join_actor() */
};

void start_actor(struct actor *a, long (*fn)(void *arg), void *arg);
/* Joins within @ms * slowness or fails the test. */
void join_actor(struct actor *a, unsigned int ms);
bool actor_ended(struct actor *a);

/*
 * The caller, and threads and children that it starts from now on, share a CPU. Between
 * go_first() and go_as_others() none of the others runs unless the caller sleeps.
 */
void share_cpu(void);
void go_first(void);
void go_as_others(void);
void leave_cpu(void);

/* Windows of the kernel, see kernel/kevent/core/testpoint.h; the guest needs two CPUs. */

/*
 * Starts an actor that stops in window @name, on another CPU than the caller's.
 * Returns false if it does not come there in time.
 */
bool start_in_window(struct actor *a, const char *name, long (*fn)(void *arg),
		     void *arg);
/*
 * The two halves of that, where a child is to stop in a window in which a task may sleep. The
 * queue is one that the caller has made.
 */
void window_arm(const char *name);
bool window_entered(void);
/* Lets it go on as far as window @name; returns likewise. */
bool window_next(const char *name);
/* Lets the actor go on, or disarms the window. */
void window_release(void);

/* A thread in one blocking call on a queue, as drawn in the wake suites */
struct waiter {
	struct actor	actor;
	struct queue	*q;
	uint32_t	min, num;
	int64_t		ms;
	struct ukevent	ev[16];	/* of get_events() */
};

/* Starts a waiter with min_nr 1 and no time limit; returns when it sleeps. */
void start_waiter(struct waiter *w, struct queue *q, uint32_t num);
/* The same with min_nr and the time limit of the caller */
void start_waiter_for(struct waiter *w, struct queue *q, uint32_t min,
		      uint32_t num, int64_t ms);
bool waiter_asleep(struct waiter *w);
/* Checks that it still sleeps, and was not woken since it had slept so often. */
void check_asleep(struct waiter *w, long long sleeps);
long join_waiter(struct waiter *w);

/* fork(); the child runs @fn and leaves with its value. */
pid_t start_child(int (*fn)(void *arg), void *arg);

/*
 * Writes from another address space, without the ring: the event waits in the
 * kernel.
 */
void put_byte_from_outside(int fd);

/* Checks in such a child: only its exit status can fail the test. */
#define CHILD_MUST(cond)						\
	do {								\
		if (!(cond)) {						\
			note("%s:%d: %s", __FILE__, __LINE__, #cond);	\
			return 1;					\
		}							\
	} while (0)

/* Exit status of a child. Kills it after @ms * slowness and fails the test. */
int join_child(pid_t pid, unsigned int ms);
/* Runs @fn in a child with the file @path set to @value. */
void with_setting(const char *path, const char *value, int (*fn)(void *arg),
		  void *arg);

/* The path of a program that the build puts next to this one; is it there? */
const char *example(const char *name);
bool have_example(const char *name);

/*
 * Execute a program that ends at once, or one that writes a byte to descriptor 1 and then
 * runs for ever. It is this one: a guest may have no other. They return on an error.
 */
void exec_and_end(void);
void exec_and_run(void);

/* What children of two suites do after an exec of this program */
int after_exec(int argc, char **argv);
int after_exec_attached(int argc, char **argv);
/* The same for signal_life_suite */
int signals_after_exec(int argc, char **argv);
/* The same for races_signals_suite */
int races_after_exec(int argc, char **argv);
/* The same for bound_calls_suite */
int bound_after_exec(int argc, char **argv);

#endif /* HELPERS_H */
