;; A plugin that speaks only versions of the contract which do not exist yet.
(module
  (import "mortise:host/1" "output_write" (func $output_write (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"future\",\"version\":\"9.0.0\",\"abi\":{\"min\":7,\"max\":9},\"hooks\":[{\"phase\":\"run_start\",\"mode\":\"observe\"}]}")
  (func (export "describe") (result i32)
    (call $output_write (i32.const 0) (i32.const 108)) (i32.const 0))
  (func (export "on_phase") (result i32) (i32.const 0)))
