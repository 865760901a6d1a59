;; A plugin that asks for no messages, reads two of them all the same, and
;; refuses with what it has read. It describes itself in JSON.
(module
  (import "mortise:host/1" "output_write" (func $output_write (param i32 i32)))
  (import "mortise:host/1" "messages_get" (func $get (param i32 i32) (result i64)))
  (import "extism:host/env" "error_set" (func $error_set (param i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"more\",\"version\":\"1.0.0\",\"abi\":{\"min\":1,\"max\":1},\"hooks\":[{\"phase\":\"step_start\",\"mode\":\"observe\"}]}")
  (func (export "describe") (result i32)
    (call $output_write (i32.const 0) (i32.const 107)) (i32.const 0))
  (func (export "on_phase") (result i32)
    (call $error_set (call $get (i32.const 1) (i32.const 99))) (i32.const 1)))
