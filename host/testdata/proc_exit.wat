;; Ends itself, with and without an error.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\06\00\00\00")
  (data (i32.const 16) "oh no\n")
  (func (export "zero") (result i32) (call $exit (i32.const 0)) (i32.const 0))
  (func (export "three") (result i32)
    (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
    (call $exit (i32.const 3)) (i32.const 0))
  ;; The codes that wazero uses for a context that ended.
  (func (export "fake_deadline") (result i32) (call $exit (i32.const 0xefffffff)) (i32.const 0))
  (func (export "fake_cancel") (result i32) (call $exit (i32.const 0xffffffff)) (i32.const 0)))
