;; Describes itself, and never comes back from a step's start.
(module
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"spin\",\"version\":\"1.0.0\",\"abi\":{\"min\":1,\"max\":1},\"hooks\":[{\"phase\":\"step_start\",\"mode\":\"observe\"}]}")
  (func (export "describe") (result i32) (call $write (i32.const 0) (i32.const 107)) (i32.const 0))
  (func (export "on_phase") (result i32) (loop $again (br $again)) (i32.const 0)))
