;; Stops each run as it begins. It describes itself in JSON.
(module
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"stop\",\"version\":\"1.0.0\",\"abi\":{\"min\":1,\"max\":1},\"hooks\":[{\"phase\":\"run_start\",\"mode\":\"gate\"}]}")
  (data (i32.const 256) "{\"effects\":[{\"type\":\"stop\",\"code\":\"closed\",\"detail\":\"not today\"}]}")
  (func (export "describe") (result i32) (call $write (i32.const 0) (i32.const 103)) (i32.const 0))
  (func (export "on_phase") (result i32) (call $write (i32.const 256) (i32.const 66)) (i32.const 0)))
