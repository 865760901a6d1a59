;; Reads items before there is a call.
(module
  (import "mortise:host/1" "messages_read" (func $read (param i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "_initialize") 
    (if (i64.ne (call $read (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) (i64.const -1)) (then unreachable)))
  (func (export "run") (result i32) (i32.const 0)))
