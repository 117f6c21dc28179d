// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Wait for a word that another thread changes, in the loop of all other events
 */
#include <libkevent.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LAST	10

static __u32 word;

static void *count(void *arg)
{
	while (__atomic_add_fetch(&word, 1, __ATOMIC_RELEASE) < LAST)
		syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
	return arg;
}

int main(void)
{
	static KEVENT_RING_STORAGE(8) mem;
	struct kevent_queue q;
	struct ukevent ev;
	pthread_t thread;
	__u32 seen = 0;
	int ret;

	ret = kevent_queue_init(&q, &mem.ring, 8, 0);
	if (ret) {
		fprintf(stderr, "futex: %s\n", kevent_strerror(ret));
		return 1;
	}
	kevent_set_futex(&ev, &word, seen, KEVENT_FUTEX_PRIVATE, 0, 0);
	if (kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev) ||
	    pthread_create(&thread, NULL, count, NULL))
		return 1;
	while (seen < LAST) {
		if (kevent_queue_get(&q, &ev, 1, NULL) != 1)
			return 1;
		/* From here on a wake-up is for others, until MODIFY. */
		seen = __atomic_load_n(&word, __ATOMIC_ACQUIRE);
		kevent_set_futex(&ev, &word, seen, KEVENT_FUTEX_PRIVATE, 0, 0);
		if (kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev))
			return 1;
	}
	pthread_join(thread, NULL);
	printf("the word is %u\n", seen);
	return 0;
}
