;; Asks for a key-value space with a reason, and imports a function of it.
(module
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (import "mortise:host/1" "kv_get" (func $kv_get (param i64) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"needs\",\"version\":\"1.0.0\",\"abi\":{\"min\":1,\"max\":1},\"hooks\":[{\"phase\":\"step_start\",\"mode\":\"observe\"}],\"capabilities\":[{\"name\":\"kv\",\"reason\":\"To remember answers.\"},{\"name\":\"clock\",\"optional\":true}]}")
  (func (export "describe") (result i32) (call $write (i32.const 0) (i32.const 204)) (i32.const 0))
  (func (export "on_phase") (result i32) (drop (call $kv_get (i64.const 0))) (i32.const 0)))
