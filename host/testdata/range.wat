;; Reads items 1 to 3 of what its caller keeps, and passes them on as output.
(module
  (import "mortise:host/1" "messages_get" (func $get (param i32 i32) (result i64)))
  (import "extism:host/env" "length" (func $length (param i64) (result i64)))
  (import "extism:host/env" "output_set" (func $output (param i64 i64)))
  (func (export "run") (result i32)
    (local $at i64)
    (local.set $at (call $get (i32.const 1) (i32.const 3)))
    (call $output (local.get $at) (call $length (local.get $at)))
    (i32.const 0)))
