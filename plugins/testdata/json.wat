;; Describes itself in JSON, and blocks each call in JSON.
(module
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"json-guard\",\"version\":\"1.0.0\",\"abi\":{\"min\":1,\"max\":1},\"hooks\":[{\"phase\":\"tool_gate\",\"mode\":\"gate\"}]}")
  (data (i32.const 1024) "{\"gate\":{\"action\":\"block\",\"reason\":\"said in JSON\"}}")
  (func (export "describe") (result i32) (call $write (i32.const 0) (i32.const 109)) (i32.const 0))
  (func (export "on_phase") (result i32) (call $write (i32.const 1024) (i32.const 51)) (i32.const 0)))
