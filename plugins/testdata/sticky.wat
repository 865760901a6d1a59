;; Counts its calls in memory and blocks each with their number. The fifth breaks.
(module
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"counter\",\"version\":\"1.0.0\",\"abi\":{\"min\":1,\"max\":1},\"capabilities\":[{\"name\":\"sticky\",\"optional\":true}],\"hooks\":[{\"phase\":\"tool_gate\",\"mode\":\"gate\"}]}")
  (data (i32.const 1024) "{\"gate\":{\"action\":\"block\",\"reason\":\"call 0\"}}")
  (func (export "describe") (result i32) (call $write (i32.const 0) (i32.const 157)) (i32.const 0))
  (func (export "on_phase") (result i32)
    (i32.store8 (i32.const 1065) (i32.add (i32.load8_u (i32.const 1065)) (i32.const 1)))
    (if (i32.eq (i32.load8_u (i32.const 1065)) (i32.const 53)) (then (unreachable)))
    (call $write (i32.const 1024) (i32.const 45))
    (i32.const 0)))
