;; Writes what get_log_level returns.
(module
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (import "extism:host/env" "get_log_level" (func $level (result i32)))
  (memory (export "memory") 1)
  (func (export "level") (result i32)
    (i32.store (i32.const 0) (call $level)) (call $write (i32.const 0) (i32.const 4)) (i32.const 0)))
