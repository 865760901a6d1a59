;; Returns how often this instance was called, and random bytes and the time.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (memory (export "memory") 1)
  (global $n (mut i32) (i32.const 0))
  (func (export "calls") (result i32)
    (global.set $n (i32.add (global.get $n) (i32.const 1))) (global.get $n))
  (func (export "random") (result i32)
    (drop (call $random (i32.const 0) (i32.const 8))) (call $write (i32.const 0) (i32.const 8)) (i32.const 0))
  (func (export "clock") (result i32)
    (drop (call $clock (i32.const 0) (i64.const 1) (i32.const 0))) (call $write (i32.const 0) (i32.const 8)) (i32.const 0)))
