/work/wt/chainargs/rust/target/debug/deps/kevent-53dd632bb3fbeaa7.d: src/lib.rs src/abi.rs src/calls.rs src/event.rs src/handles.rs src/kernel.rs src/mask.rs src/process.rs src/queue.rs src/ring.rs src/sys.rs src/watch.rs

/work/wt/chainargs/rust/target/debug/deps/libkevent-53dd632bb3fbeaa7.rlib: src/lib.rs src/abi.rs src/calls.rs src/event.rs src/handles.rs src/kernel.rs src/mask.rs src/process.rs src/queue.rs src/ring.rs src/sys.rs src/watch.rs

/work/wt/chainargs/rust/target/debug/deps/libkevent-53dd632bb3fbeaa7.rmeta: src/lib.rs src/abi.rs src/calls.rs src/event.rs src/handles.rs src/kernel.rs src/mask.rs src/process.rs src/queue.rs src/ring.rs src/sys.rs src/watch.rs

src/lib.rs:
src/abi.rs:
src/calls.rs:
src/event.rs:
src/handles.rs:
src/kernel.rs:
src/mask.rs:
src/process.rs:
src/queue.rs:
src/ring.rs:
src/sys.rs:
src/watch.rs:
