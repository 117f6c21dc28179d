// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: runs a program whose connections to listed socket paths go through memory
 *
 * It checks what the preloaded object cannot do, sets the environment, and becomes the
 * program.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "version.h"

static const char *const refused[] = { "dbus-daemon", "dbus-broker", "systemd" };

static const char usage[] =
	"usage: kevent-lane run --path PATH [--path PATH]... [--no-looks] [--children none]\n"
	"                   [--stats] PROGRAM [ARGUMENT]...\n";

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
	va_list ap;

	fputs("kevent-lane: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(125);
}

/* --- the program --------------------------------------------------------- */

static bool is_executable(const char *path)
{
	struct stat st;

	return !access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode);
}

/* As execvp() finds it; @path has room for PATH_MAX. An empty element is this folder. */
static void find_program(const char *name, char *path)
{
	const char *dirs = getenv("PATH") ?: "/bin:/usr/bin", *end;

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return;
	}
	for (;; dirs = end + 1) {
		end = strchrnul(dirs, ':');
		snprintf(path, PATH_MAX, "%.*s%s%s", (int)(end - dirs), dirs, end > dirs ? "/" : "",
			 name);
		if (is_executable(path))
			return;
		if (!*end)
			fail("%s: there is no such program in PATH", name);
	}
}

static void check_rights(const char *name, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		fail("%s: %s", name, strerror(errno));
	if ((st.st_mode & (S_ISUID | S_ISGID)) ||
	    fgetxattr(fd, "security.capability", NULL, 0) > 0)
		fail("%s has more rights than its user (set-user-ID, set-group-ID or "
		     "capabilities): the loader would leave out the object", name);
}

static bool has_interpreter(int fd, const Elf64_Ehdr *head)
{
	Elf64_Phdr part;
	int i;

	for (i = 0; i < head->e_phnum; i++)
		if (pread(fd, &part, sizeof(part), (off_t)(head->e_phoff +
			  (Elf64_Off)i * sizeof(part))) == sizeof(part) &&
		    part.p_type == PT_INTERP)
			return true;
	return false;
}

static void check_program(const char *name, int depth);

/* The first word behind #! */
static void check_script(const char *name, char *head, int depth)
{
	char *word = head + 2 + strspn(head + 2, " \t");

	word[strcspn(word, " \t\n")] = '\0';
	if (depth)
		fail("%s: the interpreter is a script, too", name);
	check_program(word, depth + 1);
}

static void check_program(const char *name, int depth)
{
	union {
		Elf64_Ehdr	elf;
		char		text[256];
	} head = { .text = "" };
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fail("%s: %s", name, strerror(errno));
	check_rights(name, fd);
	if (read(fd, &head, sizeof(head) - 1) < (ssize_t)2)
		fail("%s is no program", name);
	if (!memcmp(head.text, "#!", 2))
		check_script(name, head.text, depth);
	else if (memcmp(head.elf.e_ident, ELFMAG, SELFMAG))
		fail("%s is no program of ELF, and no script with #!", name);
	else if (head.elf.e_ident[EI_CLASS] != ELFCLASS64)
		fail("%s is a program for 32 bits, and the object is for 64", name);
	else if (!has_interpreter(fd, &head.elf))
		fail("%s is linked statically: nothing can be loaded into it", name);
	close(fd);
}

static void check_name(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t i;

	name = name ? name + 1 : path;
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (!strcmp(name, refused[i]))
			fail("%s passes descriptors beside most of its bytes: it would gain "
			     "nothing", name);
}

/* --- the environment ----------------------------------------------------- */

static char *paths;

static void add_path(const char *path)
{
	char *more;

	if (!*path || strchr(path, '\n'))
		fail("--path needs a name without a new line");
	if (asprintf(&more, "%s%s%s", paths ? paths : "", paths ? "\n" : "", path) < 0)
		fail("%s", strerror(ENOMEM));
	free(paths);
	paths = more;
}

static void set_children(const char *text)
{
	if (strcmp(text, "none"))
		fail("--children knows only none: no child uses a connection of its parent");
	setenv("KEVENT_LANE_CHILDREN", text, 1);
}

/* Beside the command where both were built; where they are installed, by LIBDIR or PREFIX */
static void find_object(char *object, size_t size)
{
	static const char *const places[] = { "%s/kevent-lane.so", LANE_OBJECT,
					      "%s/../lib/kevent/kevent-lane.so" };
	char self[PATH_MAX - 64];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t i;

	if (len < 0)
		fail("/proc/self/exe: %s", strerror(errno));
	self[len] = '\0';
	*strrchr(self, '/') = '\0';
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(object, size, places[i], self);
		if (!access(object, R_OK))
			return;
	}
	fail("there is no %s; install it", LANE_OBJECT);
}

static void preload(void)
{
	const char *before = getenv("LD_PRELOAD");
	char object[PATH_MAX], *all;

	find_object(object, sizeof(object));
	if (strpbrk(object, " :"))
		fail("%s: the loader takes no object whose name has a space or a colon", object);
	if (asprintf(&all, "%s%s%s", object, before && *before ? ":" : "",
		     before ? before : "") < 0)
		fail("%s", strerror(ENOMEM));
	setenv("LD_PRELOAD", all, 1);
}

/* The program has this process's number. */
static void set_stats(void)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("KEVENT_LANE_STATS", pid, 1);
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "path", required_argument, NULL, 'p' },
		{ "no-looks", no_argument, NULL, 'n' },
		{ "children", required_argument, NULL, 'c' },
		{ "stats", no_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (option) {
		case 'p':
			add_path(optarg);
			break;
		case 'n':
			setenv("KEVENT_LANE_NO_LOOKS", "1", 1);
			break;
		case 'c':
			set_children(optarg);
			break;
		case 's':
			set_stats();
			break;
		default:
			fputs(usage, stderr);
			exit(125);
		}
	}
}

int main(int argc, char **argv)
{
	char path[PATH_MAX];

	if (argc == 2 && !strcmp(argv[1], "--version"))
		show_version("kevent-lane");
	if (argc < 2 || strcmp(argv[1], "run")) {
		fputs(usage, stderr);
		return 125;
	}
	read_options(argc - 1, argv + 1);
	argv += optind + 1;
	if (!*argv || !paths) {
		fputs(usage, stderr);
		return 125;
	}
	find_program(*argv, path);
	check_name(path);
	check_program(path, 0);
	setenv("KEVENT_LANE_PATHS", paths, 1);
	preload();
	execv(path, argv);
	fail("%s: %s", path, strerror(errno));
}
