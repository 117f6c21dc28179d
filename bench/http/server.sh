# SPDX-License-Identifier: GPL-2.0
#
# Start, stop and check a server. For the scripts here that run in the VM as root;
# they set $server, its name, $program, its path, and $here. An error is a line
# "error: REASON" and status 1.

page=699
seconds=120
load_seconds=$seconds
port=8080
backlog=65535
few_files=20		# of a server without connections
busy_usecs=200
url=http://127.0.0.1:$port/page.html
tmp=$(mktemp -d)

die()
{
	[ ! -e "$tmp/client" ] || cat "$tmp/client"
	[ ! -e "$tmp/server" ] || tail -n 20 "$tmp/server"
	echo "error: $*"
	exit 1
}

# Connections wait in queues, none is dropped; no client runs out of ports
tune()
{
	ulimit -n 65536
	echo $backlog > /proc/sys/net/core/somaxconn
	echo $backlog > /proc/sys/net/ipv4/tcp_max_syn_backlog
	echo 1024 65535 > /proc/sys/net/ipv4/ip_local_port_range
	echo 1 > /proc/sys/net/ipv4/tcp_tw_reuse
	head -c $page /dev/zero | tr '\0' x > "$tmp/page.html"
}

listening()
{
	grep -q "$(printf ':%04X 00000000:0000 0A' $port)" /proc/net/tcp
}

running()
{
	kill -0 "$pid" 2>/dev/null
}

uptime_seconds()
{
	cut -d. -f1 /proc/uptime
}

# wait_until WHAT COMMAND...: until the command succeeds
wait_until()
{
	what=$1
	shift
	deadline=$(($(uptime_seconds) + seconds))
	until "$@"; do
		running || die "$server with $backend ended: $what"
		[ "$(uptime_seconds)" -lt $deadline ] ||
			die "$server with $backend: no end of: $what"
		sleep 0.05
	done
}

# Become the server, on $backend; kevent-busy is kevent with busy polling
launch()
{
	case $server in
	lighttpd)
		HANDLER=linux-${backend%-busy} BUSY_USECS=0
		case $backend in
		epoll)	HANDLER=linux-sysepoll ;;
		poll)	HANDLER=poll ;;
		*-busy)	BUSY_USECS=$busy_usecs ;;
		esac
		export HANDLER BUSY_USECS DOCROOT="$tmp"
		exec "$@" "$program" -D -f "$here/lighttpd.conf" ;;
	libev-httpd)
		case $backend in
		kevent)	export LIBEV_FLAGS=256 ;;
		epoll)	export LIBEV_FLAGS=4 ;;
		poll)	export LIBEV_FLAGS=2 ;;
		esac
		exec "$@" "$program" $port "$tmp/page.html" ;;
	libevent-httpd)
		for other in kevent epoll poll select; do
			[ $other = "$backend" ] || export "EVENT_NO$(
				echo $other | tr a-z A-Z)=1"
		done
		exec "$@" "$program" -p $port "$tmp" ;;
	esac
}

# start_server BACKEND [WORD...]: WORDs go before the server's own
start_server()
{
	backend=$1
	shift
	rm -f "$tmp/client"
	(launch "$@") > "$tmp/server" 2>&1 &
	pid=$!
	wait_until "start" listening
}

# The size of the folder is their number
open_files()
{
	stat -c %s "/proc/$pid/fd"
}

alone()
{
	[ "$(open_files)" -lt $few_files ]
}

# What ends by the signal has ended well.  lighttpd ends with status 1 if it has
# connections left.
stop_server()
{
	wait_until "end of connections" alone
	kill "$pid"
	status=0
	wait "$pid" || status=$?
	[ $status -eq 0 ] || [ $status -eq 143 ] ||
		die "$server with $backend ended with status $status"
	! listening || die "$server with $backend left its socket"
}

# A field of ab's report, 0 for those it leaves out when there is nothing
field()
{
	awk -F ':[ \t]*' -v name="$1" '
		$1 == name { split($2, word, " "); value = word[1] }
		END { print value + 0 }' "$tmp/client"
}

# die_of_load CLIENT STATUS: with the connections that have not ended, and their queues
die_of_load()
{
	echo "open files of the server: $(open_files)"
	awk '$4 != "06" { print $2, $3, $4, $5 }' /proc/net/tcp | head -n 40
	die "$1 against $backend ended with status $2"
}

# run_ab KEEP CLIENTS REQUESTS
run_ab()
{
	flag=-k
	[ "$1" = keep ] || flag=
	timeout $load_seconds ab -q -s $load_seconds $flag -n "$3" -c "$2" "$url" \
		> "$tmp/client" 2>&1 || die_of_load ab $?
	running || die "$server with $backend died"
	[ "$(field "Document Length")" -eq $page ] ||
		die "the page of $server with $backend has not $page bytes"
	[ "$(field "Complete requests")" -eq "$3" ] ||
		die "ab against $backend did not complete $3 requests"
	[ "$(field "Failed requests")" -eq 0 ] ||
		die "$(field "Failed requests") requests to $backend failed"
	[ "$(field "Non-2xx responses")" -eq 0 ] ||
		die "$server with $backend answered with an error"
	requests=$3
	rate=$(field "Requests per second")
}

# Files of the server that are neither files nor connections
anonymous_fds()
{
	ls -l "/proc/$pid/fd" 2>/dev/null |
		sed -n 's|.* \([0-9]*\) -> anon_inode:\[*\([a-z]*\).*|\2 \1|p'
}

# What the server's kevent queues say of themselves
queues()
{
	anonymous_fds | while read -r kind fd; do
		[ "$kind" != kevent ] || cat "/proc/$pid/fdinfo/$fd"
	done
}

# Which backend really was in use; sets $delivered, the events of kevent
check_backend()
{
	kinds=$(anonymous_fds | cut -d' ' -f1 | tr '\n' ' ')
	delivered=$(queues | awk '$1 == "kevent-delivered:" { sum += $2 }
		END { print sum + 0 }')
	case $backend,$kinds in
	kevent*,*kevent*)
		[ "$delivered" -gt 0 ] ||
			die "$server got no event from its queue" ;;
	kevent*,*)	die "$server with kevent has no queue" ;;
	*,*kevent*)	die "$server with $backend has a kevent queue" ;;
	epoll,*eventpoll*)	;;
	epoll,*)	die "$server with epoll has no epoll descriptor" ;;
	*,*eventpoll*)	die "$server with $backend has an epoll descriptor" ;;
	esac
}
