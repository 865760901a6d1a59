;; Writes its input to a standard stream: the first byte is the descriptor, the second how often.
(module
  (import "mortise:host/1" "input_read" (func $read (param i32)))
  (import "extism:host/env" "input_length" (func $len (result i64)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func $print (local $i i32)
    (call $read (i32.const 98))
    (i32.store (i32.const 0) (i32.const 100))
    (i32.store (i32.const 4) (i32.sub (i32.wrap_i64 (call $len)) (i32.const 2)))
    (loop $again
      (if (call $fd_write (i32.load8_u (i32.const 98)) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.load8_u (i32.const 99))))))
  (func (export "print") (result i32) (call $print) (i32.const 0))
  (func (export "trap") (result i32) (call $print) unreachable))
