# SPDX-License-Identifier: GPL-2.0
#
# Functions of scripts that run a server of HTTP in the VM, as root. A script
# sources this file and sets
#
# port		where the server listens (8080)
# page		size of the page it serves (699)
# seconds	how long a script waits for a state (120)
#
# $tmp is a new folder. It has page.html once tune() was called, and "client",
# what ab or another client printed.

port=8080
page=699
seconds=120
backlog=65535
url=http://127.0.0.1:$port/page.html
tmp=$(mktemp -d)

make_page()
{
	head -c $page /dev/zero | tr '\0' x > "$tmp/page.html"
}

# Connections wait in queues, none is dropped; no client runs out of ports
tune()
{
	ulimit -n 65536
	echo $backlog > /proc/sys/net/core/somaxconn
	echo $backlog > /proc/sys/net/ipv4/tcp_max_syn_backlog
	echo 1024 65535 > /proc/sys/net/ipv4/ip_local_port_range
	echo 1 > /proc/sys/net/ipv4/tcp_tw_reuse
	make_page
}

listening()
{
	grep -q "$(printf ':%04X 00000000:0000 0A' $port)" /proc/net/tcp
}

# gone PID
gone()
{
	! kill -0 "$1" 2>/dev/null
}

uptime_seconds()
{
	cut -d. -f1 /proc/uptime
}

# until_true COMMAND...: wait until it succeeds; fails when that takes too long, and
# says so at once: what the caller prints may come much later
until_true()
{
	deadline=$(($(uptime_seconds) + seconds))
	until "$@"; do
		[ "$(uptime_seconds)" -lt $deadline ] || {
			echo "not within $seconds s: $*" >&2
			return 1
		}
		sleep 0.05
	done
}

# ended PID: a child of this script has, or has been waited for
ended()
{
	case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in
	""|Z*)	;;
	*)	return 1 ;;
	esac
}

# Ticks of a processor that it has had in user mode and in the kernel
ticks()
{
	sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f12,13
}

# Connections by state, and by whether they have bytes to send or to be read
connections()
{
	awk 'NR > 1 {
			split($5, bytes, ":")
			seen[$4 (bytes[1] ~ /[^0]/ ? " to send" : "") \
				(bytes[2] ~ /[^0]/ ? " to be read" : "")]++
		}
		END { for (what in seen) print seen[what], "in state", what }' \
		/proc/net/tcp
}

# interests PID: how many files its epolls watch for which events
interests()
{
	cat "/proc/$1/fdinfo"/* 2>/dev/null | awk '
		$1 == "tfd:" { seen[$4]++ }
		END { for (events in seen) print seen[events], "files are watched for",
			events }'
}

# show PID: what it does, its queues and epolls, and all connections
show()
{
	echo "$(cat "/proc/$1/comm"): ticks $(ticks "$1"), a second later" \
		"$(sleep 1; ticks "$1"); $(ls "/proc/$1/fd" | wc -l) files"
	for task in "/proc/$1/task"/*; do
		echo "thread ${task##*/}, system call $(cat "$task/syscall")"
		cat "$task/stack"
	done
	queues "$1"
	interests "$1"
	connections
}

# wait_for PID: its status; it is shown and killed when it takes too long to end
wait_for()
{
	until_true ended "$1" || {
		show "$1" >&2
		kill -KILL "$1"
	}
	wait "$1"
}

# true_or_gone PID COMMAND...
true_or_gone()
{
	server_pid=$1
	shift
	"$@" || gone "$server_pid"
}

# until_listening PID: fails if the server ends, or takes too long
until_listening()
{
	until_true true_or_gone "$1" listening
	listening
}

# A field of ab's report, 0 for those it leaves out when there is nothing
field()
{
	awk -F ':[ \t]*' -v name="$1" '
		$1 == name { split($2, word, " "); value = word[1] }
		END { print value + 0 }' "$tmp/client"
}

# complaints REQUESTS: what is wrong with the answers that ab got
complaints()
{
	[ "$(field "Document Length")" -eq $page ] ||
		echo "the page has not $page bytes"
	[ "$(field "Complete requests")" -eq "$1" ] ||
		echo "only $(field "Complete requests") of $1 requests"
	[ "$(field "Failed requests")" -eq 0 ] ||
		echo "$(field "Failed requests") requests failed"
	[ "$(field "Non-2xx responses")" -eq 0 ] ||
		echo "an answer is an error"
}

# anonymous_fds PID: kind and number of what is neither file nor connection
anonymous_fds()
{
	ls -l "/proc/$1/fd" 2>/dev/null |
		sed -n 's|.* \([0-9]*\) -> anon_inode:\[*\([a-z]*\).*|\2 \1|p'
}

# queues PID: the fdinfo of its kevent queues
queues()
{
	anonymous_fds "$1" | while read -r kind fd; do
		[ "$kind" != kevent ] || cat "/proc/$1/fdinfo/$fd"
	done
}

# counter PID NAME: the number of its kevent queues, and a counter of fdinfo
# added up
counter()
{
	queues "$1" | awk -v name="kevent-$2:" '
		$1 == "kevent-ring-size:" { queues++ }
		$1 == name { sum += $2 }
		END { print queues + 0, sum + 0 }'
}

# delivered_events PID: of its kevent queues
delivered_events()
{
	counter "$1" delivered | cut -d' ' -f2
}

# result NAME PROBLEM: a line for a check; without a PROBLEM it is good
result()
{
	if [ -z "$2" ]; then
		echo "ok $1"
	else
		echo "not ok $1: $2" | tr '\n' ' '
		echo
	fi
}
