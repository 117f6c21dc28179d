/work/wt/chainargs/rust/target/debug/deps/layout-c548cf7066557f19.d: tests/layout.rs tests/../../include/uapi/linux/ukevent.h tests/../../libkevent/test/layout.c tests/../../libkevent/src/api/syscall.h tests/../README.md tests/../examples/readme.rs

/work/wt/chainargs/rust/target/debug/deps/layout-c548cf7066557f19: tests/layout.rs tests/../../include/uapi/linux/ukevent.h tests/../../libkevent/test/layout.c tests/../../libkevent/src/api/syscall.h tests/../README.md tests/../examples/readme.rs

tests/layout.rs:
tests/../../include/uapi/linux/ukevent.h:
tests/../../libkevent/test/layout.c:
tests/../../libkevent/src/api/syscall.h:
tests/../README.md:
tests/../examples/readme.rs:
