// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Numbers from one thread to another: each mark is an event with its data
 */
#include <libkevent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBER	1
#define END	2
#define NUMBERS	100

static struct kevent_queue queue;

static void *give(void *arg)
{
	struct ukevent ev;
	__u64 i;
	int ret;

	for (i = 1; i <= NUMBERS; i++) {
		kevent_set_mark(&ev, 1, i < NUMBERS ? NUMBER : END, i * i);
		ret = kevent_ctl_one(queue.fd, KEVENT_CTL_READY, &ev);
		if (ret != 1) {
			fprintf(stderr, "user: %s\n", kevent_strerror(ret));
			exit(1);
		}
	}
	return arg;
}

int main(void)
{
	static KEVENT_RING_STORAGE(16) mem;
	struct ukevent ev;
	__u64 sum = 0;
	pthread_t thread;
	int ret;

	ret = kevent_queue_init(&queue, &mem.ring, 16, 0);
	if (ret) {
		fprintf(stderr, "user: %s\n", kevent_strerror(ret));
		return 1;
	}
	kevent_set_user(&ev, 1, NUMBER | END, KEVENT_REQ_KEEP_EACH, 0);
	if (kevent_ctl_one(queue.fd, KEVENT_CTL_ADD, &ev) ||
	    pthread_create(&thread, NULL, give, &queue))
		return 1;
	do {
		if (kevent_queue_get(&queue, &ev, 1, NULL) != 1)
			return 1;
		sum += kevent_mark_data(&ev);
	} while (ev.event != END);
	pthread_join(thread, NULL);
	printf("sum of squares: %llu\n", (unsigned long long)sum);
	return sum != 338350;
}
