// SPDX-License-Identifier: GPL-2.0
/*
 * Queues and epoll files as sources of queues
 *
 * Queues and epolls are sets of files. A set that is watched is linked to the one that
 * watches it. A loop of links would wake up for ever, and a long path would overflow the
 * stack. epoll allows no loops of such links, no path of more than EP_MAX_NESTS, and few
 * paths from a file. Instead of a second check, kevent makes epoll's go through queues:
 * down to the files that a queue watches, and up to the queues that watch a file.
 * epnested_mutex of fs/eventpoll.c orders all who add a link, of either kind: two of them
 * could otherwise close a loop together. Only three operations take it: ADD of a set to a
 * queue, EPOLL_CTL_ADD of a set to an epoll, and EPOLL_CTL_ADD of any file to an epoll that
 * a set watches.
 *
 * ADD of a set calls ep_nest_begin(), which locks the mutex, killably, and checks for
 * loops and long paths. Then it links the watch to the file, and ep_nest_end() counts the
 * paths and unlocks. ->poll() is called after that, as that of an epoll file may sleep in
 * another file's. So checks see a link before its watch is in a wait queue, and until
 * detach() has taken it out of all of them.
 *
 * There are three walks, each of which crosses from epoll to queues and back:
 *
 * - Down from the set that is added, in search of the one it is added to: ep_nest_down(),
 *   ep_loop_check_proc(), kevent_nest_down(). A queue has the files of its nested watches
 *   in an xarray, so the walk does not pass its other watches. It holds ep->mtx of each
 *   epoll on its path, one inside the other, and no lock of a queue. It gets a reference
 *   to each file that a queue watches, under the lock of the xarray: a file that is there
 *   is pinned by its descriptor, or by the task that detaches the watch. An epoll does not
 *   pin the files it watches, but ep->mtx delays their end.
 * - Up from the set that gets the link, for the depth: ep_nest_up(), kevent_nest_up(). RCU
 *   protects it: epoll's items hang on kevent_nest.refs, which is f_ep of the queue's
 *   file, as they hang on eventpoll.refs; the watches of a file on f_kevent. From an epoll
 *   or queue the walk must get to its file, which it does not pin. The memory of a struct
 *   file may become another file within a grace period, but that file has lists of the same
 *   kind. At worst a task gets ELOOP or ENOSPC for no reason, if it adds a link while a set
 *   above it is closed.
 * - Up along all paths, from each file below an epoll, and from each queue, that the first
 *   walk has come to: reverse_path_check(), ep_nest_paths(), kevent_nest_paths(). It
 *   begins at queues and not at the files they watch, which may be very many.
 *
 * The first two walks visit each set once: "gen" is the number of the last check that was
 * there, and "depth" its result.
 *
 * The first walk ends with ELOOP after 4096 links of queues, whoever owns them; links of
 * epolls are not limited, here as before. It waits for ep->mtx of the epolls it visits, as
 * epoll's own does, which their owner may hold while memory or another file's ->poll()
 * does not come. The other walks follow at most 660 paths of more than one link from a
 * set, and the watches that a file may have.
 *
 * Wake-ups of nested epolls run one inside the other, with the locks of all poll_wait on the
 * way held. A queue ends that: kevent_poll_work() wakes its pollers later, without a lock.
 */

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/sched.h>

#include "../core/lookup.h"
#include "../core/queue.h"
#include "../core/quota.h"
#include "../host.h"
#include "file_nest.h"

/*
 * Links of queues that one check follows downwards. It holds the mutex that all who
 * nest sets wait for.
 */
#define KEVENT_NEST_LOOKS	4096U

/* A file in &kevent_nest.watched may need a leaf of its own. */
#define KEVENT_NEST_COST	sizeof(struct xa_node)

/* Of the check that holds the mutex: queues on the way down, links followed */
static struct kevent_nest *visited;
static unsigned int looks;

static struct kevent_nest *nest_of(const struct file *file)
{
	struct kevent_queue *q = file->private_data;

	return &q->nest;
}

/* For epoll */

/* Where the items of epolls are that watch a queue */
struct hlist_head *kevent_nest_refs(struct file *file)
{
	return &nest_of(file)->refs;
}

static int depth_below(struct kevent_nest *nest, int depth)
{
	unsigned long index = 0;
	struct file *file;
	int result = 0;

	while (result <= EP_MAX_NESTS) {
		xa_lock(&nest->watched);
		file = xa_find(&nest->watched, &index, ULONG_MAX, XA_PRESENT);
		if (file)
			get_file(file);
		xa_unlock(&nest->watched);
		if (!file)
			break;
		if (++looks > KEVENT_NEST_LOOKS)
			result = EP_MAX_NESTS + 1;
		else
			result = max(result, ep_nest_down(file, depth + 1));
		fput(file);
		index++;
		cond_resched();
	}
	return result;
}

/*
 * A check of epoll's has come to a queue on its way down, with @depth links behind. Returns
 * links to the end of the longest path, more than EP_MAX_NESTS for a loop, too long a path,
 * or too many links.
 */
int kevent_nest_down(struct file *file, int depth)
{
	struct kevent_nest *nest = nest_of(file);

	if (ep_nest_visited(&nest->gen))
		return nest->depth;
	nest->depth = 0;
	/* The queue is being closed, and watched by an epoll that knows it yet. */
	if (!get_file_active(&nest->file))
		return 0;
	nest->next = visited;
	visited = nest;
	nest->depth = depth_below(nest, depth);
	return nest->depth;
}

/*
 * Follow the watches of a queue or epoll file upwards, with @depth links behind. Under RCU.
 * The queues of one user are up to KEVENT_MAX_PER_FILE, see sources/file_wait.c, too.
 * Returns links to the end of the longest path.
 */
int kevent_nest_up(struct file *file, int depth)
{
	struct kevent_file *kf = host_watches(file);
	struct kevent_nest *nest;
	struct file *above;
	int result = 0;

	for (; kf; kf = READ_ONCE(kf->next)) {
		nest = &kf->ke.queue->nest;
		above = READ_ONCE(nest->file);
		if (above && !ep_nest_visited(&nest->gen))
			nest->depth = ep_nest_up(&nest->refs, above, depth + 1);
		result = max(result, above ? nest->depth + 1 : 1);
	}
	return result;
}

/*
 * Count the paths from a queue or epoll file upwards, with @depth links behind. Under RCU.
 * Returns 0, or -1 when there are too many.
 */
int kevent_nest_paths(struct file *file, int depth)
{
	struct kevent_file *kf = host_watches(file);
	struct kevent_nest *nest;
	struct file *above;
	int err = 0;

	for (; kf && !err; kf = READ_ONCE(kf->next)) {
		nest = &kf->ke.queue->nest;
		above = READ_ONCE(nest->file);
		if (above)
			err = ep_nest_paths(&nest->refs, above, depth);
	}
	return err;
}

/* Are there too many paths from a queue that was visited? 0 or -1 */
int kevent_nest_check(void)
{
	struct kevent_nest *nest;
	int err = 0;

	for (nest = visited; nest && !err; nest = nest->next) {
		err = ep_nest_check_set(nest->file);
		cond_resched();
	}
	return err;
}

/* The check is over, and the mutex still held. */
void kevent_nest_done(void)
{
	struct kevent_nest *nest;

	while ((nest = visited)) {
		visited = nest->next;
		fput(nest->file);
	}
	looks = 0;
}

/*
 * kevent_file_link() for a queue or epoll file. Returns 0, -ELOOP for a loop or too long a
 * path, -ENOSPC when there are too many paths, or over another limit, -EEXIST, -ENOMEM, or
 * -EINTR on a fatal signal. After an error, too, kevent_file_unlink() and
 * kevent_nest_unlink() must follow.
 */
int kevent_nest_link(struct kevent_poll *kp, struct file *file)
{
	struct kevent *ke = &kp->kf.ke;
	struct kevent_queue *q = ke->queue;
	int err, full;

	err = ep_nest_begin(q->nest.file, file);
	if (err)
		return err;
	if (!kevent_charge(q->owner, KEVENT_NEST_COST)) {
		err = -ENOSPC;
	} else {
		err = xa_err(xa_store(&q->nest.watched, ke->index, file,
				      GFP_KERNEL_ACCOUNT));
		if (err)
			kevent_uncharge(q->owner, KEVENT_NEST_COST);
	}
	if (!err)
		err = kevent_file_link(&kp->kf, file);
	full = ep_nest_end();
	return err ?: full;
}

/* Undo kevent_nest_link(), if that was done, after kevent_file_unlink(); the file is pinned. */
void kevent_nest_unlink(struct kevent *ke)
{
	struct kevent_queue *q = ke->queue;

	if (xa_erase(&q->nest.watched, ke->index))
		kevent_uncharge(q->owner, KEVENT_NEST_COST);
}
