;; Gives more output than allowed, by both ways.
(module
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "output_set" (func $out (param i64 i64)))
  (memory 20)
  (func (export "bulk") (result i32) (call $write (i32.const 0) (i32.const 1000001)) (i32.const 0))
  (func (export "negative") (result i32) (call $write (i32.const 0) (i32.const -1)) (i32.const 0))
  (func (export "kernel") (result i32)
    (call $out (call $alloc (i64.const 1000001)) (i64.const 1000001)) (i32.const 0)))
