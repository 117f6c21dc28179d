# SPDX-License-Identifier: GPL-2.0
#
# Functions that start, stop and check a server on one of its backends. The scripts
# here that run in the VM as root source this file. They set $server, the name of the
# server, $program, its path, and $here. On an error a function prints "error: REASON"
# and ends the script with status 1.

. "$here/../../scripts/server.sh"

load_seconds=$seconds
few_files=20		# of a server without connections
group=/sys/fs/cgroup/server	# of those that in-group starts
busy_usecs=200

die()
{
	[ ! -e "$tmp/client" ] || cat "$tmp/client"
	[ ! -e "$tmp/server" ] || tail -n 20 "$tmp/server"
	echo "error: $*"
	exit 1
}

running()
{
	! gone "$pid"
}

# wait_until WHAT COMMAND...: until the command succeeds
wait_until()
{
	what=$1
	shift
	until_true true_or_gone "$pid" "$@" ||
		die "$server with $backend: no end of: $what"
	"$@" || die "$server with $backend ended: $what"
}

# configure_nginx: its configuration, in the folder of the page. Without a master
# process there is one worker, as with the others
configure_nginx()
{
	cat > "$tmp/nginx.conf" <<-END
	user root;
	daemon off;
	master_process off;
	worker_rlimit_nofile 40000;
	pid $tmp/nginx.pid;
	error_log $tmp/nginx.log;
	events {
		use $backend;
		worker_connections 20000;
	}
	http {
		access_log off;
		sendfile on;
		keepalive_requests 1000000;
		keepalive_timeout 1h;
		client_header_timeout 1h;
		client_body_temp_path $tmp/t1;
		proxy_temp_path $tmp/t2;
		fastcgi_temp_path $tmp/t3;
		uwsgi_temp_path $tmp/t4;
		scgi_temp_path $tmp/t5;
		server {
			listen 127.0.0.1:$port backlog=65535;
			root $tmp;
		}
	}
	END
}

# Replace the shell by the server on $backend; kevent-busy is kevent with busy polling,
# kevent-calls with chains of calls. An example has a program for each, next to $program.
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
	nginx)
		configure_nginx
		exec "$@" "$program" -e "$tmp/nginx.log" -c "$tmp/nginx.conf" ;;
	example)
		exec "$@" "${program%/*}/http_${backend#*-}" $port \
			"$tmp/page.html" ;;
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

# A server may end by the signal. lighttpd ends with status 1 if it has connections.
stop_server()
{
	wait_until "end of connections" alone
	kill "$pid"
	status=0
	wait_for "$pid" || status=$?
	[ $status -eq 0 ] || [ $status -eq 143 ] ||
		die "$server with $backend ended with status $status"
	! listening || die "$server with $backend left its socket"
}

# The CPU time that servers have used, in the kernel, too
server_us()
{
	awk '$1 == "usage_usec" { print $2 }' $group/cpu.stat
}

per_request()
{
	awk -v sum="$1" -v requests="$requests" \
		'BEGIN { printf "%.6g\n", sum / requests }'
}

# die_of_load CLIENT STATUS: show the server, then die
die_of_load()
{
	show "$pid"
	die "$1 against $backend ended with status $2"
}

# A client that hangs prints its report when it is interrupted.
interrupt_late()
{
	sleep $load_seconds
	show "$1"
	kill -INT "$1"
}

# run_ab KEEP CLIENTS REQUESTS. Nothing else runs meanwhile: it would be measured.
run_ab()
{
	flag=-k
	[ "$1" = keep ] || flag=
	ab -q -s $load_seconds $flag -n "$3" -c "$2" "$url" > "$tmp/client" 2>&1 &
	ab_pid=$!
	interrupt_late $ab_pid > "$tmp/late" 2>&1 &
	late=$!
	status=0
	wait $ab_pid || status=$?
	kill -0 $late 2>/dev/null || {
		cat "$tmp/late"
		die_of_load ab "no end"
	}
	kill $late
	[ $status -eq 0 ] || die_of_load ab $status
	running || die "$server with $backend died"
	problem=$(complaints "$3" | head -n 1)
	[ -z "$problem" ] || die "$server with $backend: $problem"
	requests=$3
	rate=$(field "Requests per second")
}

# Check which backend the server used; sets $delivered, the events of kevent
check_backend()
{
	kinds=$(anonymous_fds "$pid" | cut -d' ' -f1 | tr '\n' ' ')
	delivered=$(delivered_events "$pid")
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
