# SPDX-License-Identifier: GPL-2.0
"""Servers of tests/long/lane_suites: each has a client that compares every byte it gets."""

import hashlib
import http.client
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from lib.build import logged

REQUESTS = 20000		# of ab
POSTS = 400			# of BODY bytes, in each stage
BODY = 100000
CLIENTS = 20
SECONDS = 60

NGINX = """
user root;
daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log stderr;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_max_body_size 10m;
    client_body_temp_path {folder}/body;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    proxy_temp_path {folder}/proxy;
    scgi_temp_path {folder}/scgi;
    upstream kept {{ server unix:{folder}/backend; keepalive 8; }}
    server {{
        listen 127.0.0.1:{port};
        keepalive_requests 100000;
        location /new {{ {one} }}
        location /kept {{ {kept} }}
    }}
}}
"""
FASTCGI = """include /etc/nginx/fastcgi_params; fastcgi_pass {to}; fastcgi_keep_conn {keep};
fastcgi_param SCRIPT_FILENAME {folder}/app.php;"""
UWSGI = "include /etc/nginx/uwsgi_params; uwsgi_pass {to};"
# The answer is a sum of the body, and the body; without one, a page of 5000 bytes
PHP = """<?php
$body = file_get_contents('php://input');
if ($body === '') $body = str_repeat('0123456789', 500);
echo hash('sha256', $body), $body;
"""
PHP_FPM = """
[global]
error_log = {folder}/fpm.log
daemonize = no
process_control_timeout = 20s
[www]
user = root
group = root
listen = {folder}/backend
pm = static
pm.max_children = 40
"""
# uwsgi ends an answer when SIGHUP interrupts its wait for room: the length shows that it is cut off
WSGI = """
import hashlib
def application(environ, start_response):
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(length) if length else b"0123456789" * 500
    answer = hashlib.sha256(body).hexdigest().encode() + body
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]
"""


def wait_until(true):
    """Dies if it does not become true."""
    end = time.monotonic() + SECONDS
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {SECONDS} s")
        time.sleep(0.02)


def listens(address):
    with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as conn:
        return not conn.connect_ex(address)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Server:
    """A program until the end of the block, and its descendants: they are its process group."""

    def __init__(self, place, words, address, end=signal.SIGTERM):
        self.place, self.words, self.address = place, [str(word) for word in words], address
        self.end = end

    def __enter__(self):
        with open(self.place.log, "a") as log:
            self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, start_new_session=True)
        wait_until(lambda: listens(self.address) or self.process.poll() is not None)
        if self.process.poll() is not None:
            raise ChildProcessError(f"{self.words} has ended, see {self.place.log}")
        return self

    def __exit__(self, *_):
        """With time to say what --stats wants"""
        self.process.send_signal(self.end)
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def outcome(right):
    return "ok" if right else "failed"


# --- nginx --------------------------------------------------------------------

def ab(place, port, location):
    done = logged(place.log, ["ab", "-q", "-k", "-n", REQUESTS, "-c", CLIENTS, "-s", SECONDS,
                              f"http://127.0.0.1:{port}{location}"])
    counts = dict(re.findall(r"^(\S+ \S+): +(\d+)", done.stdout, re.MULTILINE))
    return outcome(counts.get("Complete requests") == str(REQUESTS) and
                   counts.get("Failed requests") == "0" and
                   "Document Length:        5064 bytes" in done.stdout and
                   "Non-2xx" not in done.stdout)


def post(port, location, seed):
    """Its status; None if the answer is wrong"""
    body = random.Random(seed).randbytes(BODY)
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        conn.request("POST", location, body, {"Connection": "close"})
        answer = conn.getresponse()
        got = answer.read()
    except (OSError, http.client.HTTPException) as error:
        return repr(error)
    finally:
        conn.close()
    if answer.status == 200 and got != hashlib.sha256(body).hexdigest().encode() + body:
        return None
    return answer.status


def posts(port, location, middle=None):
    """What POSTS requests of CLIENTS threads got; the middle is called when a part is done."""
    seeds, statuses, lock = iter(range(POSTS)), [], threading.Lock()

    def client():
        while True:
            with lock:
                seed = next(seeds, None)
            if seed is None:
                return
            status = post(port, location, seed)
            with lock:
                statuses.append(status)

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    if middle:
        wait_until(lambda: len(statuses) >= POSTS // 3)
        middle()
    for thread in threads:
        thread.join()
    return statuses


def say_wrong(place, what, statuses):
    with open(place.log, "a") as log:
        print(what, sorted({str(status): statuses.count(status) for status in statuses}.items()),
              file=log)


def all_right(place, port, location, middle=None):
    statuses = posts(port, location, middle)
    say_wrong(place, location, statuses)
    return outcome(statuses == [200] * POSTS)


def none_wrong(place, port, location, middle):
    """While the backend is away, nginx says so, or cuts an answer off."""
    statuses = posts(port, location, middle)
    say_wrong(place, f"{location} with a restart", statuses)
    return outcome(len(statuses) == POSTS and None not in statuses)


def behind_nginx(place, passing, words, reload_signal, end_signal):
    port = free_port()
    parts = [passing.format(folder=place.folder, to=to, keep=keep)
             for to, keep in ((f"unix:{place.folder}/backend", "off"), ("kept", "on"))]
    config = place.folder / "nginx.conf"
    config.write_text(NGINX.format(folder=place.folder, port=port, one=parts[0], kept=parts[1]))
    path = str(place.folder / "backend")
    backend = Server(place, [*place.tool("server", path, "--stats"), *words], path, end_signal)
    nginx = Server(place, [*place.tool("client", path, "--stats"), "nginx", "-c", config],
                   ("127.0.0.1", port), signal.SIGQUIT)
    results = {}

    def restart():
        backend.__exit__()
        Path(path).unlink(missing_ok=True)
        backend.__enter__()

    with backend, nginx:
        for location in ("/new", "/kept"):
            results[f"ab {location}"] = ab(place, port, location)
            results[f"bodies {location}"] = all_right(place, port, location)
            results[f"reload of nginx {location}"] = all_right(
                place, port, location, lambda: nginx.process.send_signal(signal.SIGHUP))
            results[f"reload of the backend {location}"] = none_wrong(
                place, port, location, lambda: backend.process.send_signal(reload_signal))
            results[f"after it {location}"] = all_right(place, port, location)
            results[f"restart {location}"] = none_wrong(place, port, location, restart)
            results[f"after the restart {location}"] = all_right(place, port, location)
            results[f"ab again {location}"] = ab(place, port, location)
    return results


def php(place):
    (place.folder / "app.php").write_text(PHP)
    config = place.folder / "fpm.conf"
    config.write_text(PHP_FPM.format(folder=place.folder))
    program = next(Path("/usr/sbin").glob("php-fpm*"))
    return behind_nginx(place, FASTCGI, [program, "-F", "-R", "-y", config], signal.SIGUSR2,
                        signal.SIGTERM)


def uwsgi(place):
    (place.folder / "app.py").write_text(WSGI)
    return behind_nginx(
        place, UWSGI, ["uwsgi_python3", "--uwsgi-socket", place.folder / "backend", "--master",
                       "--processes", "4", "--wsgi-file", place.folder / "app.py",
                       "--disable-logging"], signal.SIGHUP, signal.SIGINT)


# --- clients of their own: this file as a program -----------------------------

def line_of(file):
    line = file.readline()
    assert line.endswith(b"\r\n"), line
    return line[:-2]


def exchange_values(path, seed):
    """Sets and gets values of many sizes, one by one and many at a time."""
    rand = random.Random(seed)
    with socket.socket(socket.AF_UNIX) as conn:
        conn.connect(path)
        file = conn.makefile("rb")
        for turn in range(30):
            values = {f"{seed}-{turn}-{nr}".encode(): rand.randbytes(
                rand.choice((1, 100, 5000, 70000, 500000))) for nr in range(rand.choice((1, 8)))}
            for key, value in values.items():
                conn.sendall(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
                assert line_of(file) == b"STORED"
            conn.sendall(b"get " + b" ".join(values) + b"\r\n")
            for key, value in values.items():
                assert line_of(file) == b"VALUE %s 0 %d" % (key, len(value))
                assert file.read(len(value) + 2) == value + b"\r\n"
            assert line_of(file) == b"END"


def is_right(place, words, **kwargs):
    done = logged(place.log, ["timeout", SECONDS, *words], **kwargs)
    return outcome(not done.returncode)


def memcached(place):
    path = place.folder / "memcached"
    client = [*place.tool("client", path, "--stats"), sys.executable, Path(__file__), path]
    words = ["memcached", "-u", "root", "-s", path, "-m", "1000", "-t", "2"]
    with Server(place, [*place.tool("server", path, "--stats"), *words], str(path)):
        return {f"values, {nr} at a time": is_right(place, [*client, str(nr)]) for nr in (1, 4, 16)}


def socat(place):
    """A file goes there and back, by a program of each connection, and by a child of the server."""
    path, data = str(place.folder / "socat"), random.Random(1).randbytes(3000000)
    (place.folder / "data").write_bytes(data)
    results = {}
    for name in ("EXEC:cat", "SYSTEM:cat", "PIPE"):
        words = ["socat", "-t", "30", f"UNIX-LISTEN:{path},fork,backlog=100,unlink-early", name]
        client = ["sh", "-c", 'socat -t 30 - "UNIX-CONNECT:$1" <"$2" | cmp - "$2"', "sh", path,
                  place.folder / "data"]
        with Server(place, [*place.tool("server", path, "--stats"), *words], path):
            for nr in range(5):
                results[f"{name} {nr}"] = is_right(
                    place, [*place.tool("client", path, "--stats"), *client])
    return results


if __name__ == "__main__":
    if int(sys.argv[2]) == 1:
        exchange_values(sys.argv[1], 0)
        sys.exit()
    children = [subprocess.Popen([sys.executable, __file__, sys.argv[1], "1"])
                for _ in range(int(sys.argv[2]))]
    sys.exit(any([child.wait() for child in children]))
