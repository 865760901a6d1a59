;; Registers a tool whose name no provider takes.
(module
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"tools\",\"version\":\"1.0.0\",\"abi\":{\"min\":1,\"max\":1},\"tools\":[{\"name\":\"look up\"}]}")
  (func (export "describe") (result i32) (call $write (i32.const 0) (i32.const 87)) (i32.const 0))
  (func (export "call_tool") (result i32) (i32.const 0)))
