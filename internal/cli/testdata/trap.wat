;; A summarizer that traps. It describes itself in JSON.
(module
  (import "mortise:host/1" "output_write" (func $output_write (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"traps\",\"version\":\"1.0.0\",\"abi\":{\"min\":1,\"max\":1},\"summary\":\"Traps at each request.\"}")
  (func (export "describe") (result i32)
    (call $output_write (i32.const 0) (i32.const 93)) (i32.const 0))
  (func (export "summarize") (result i32) unreachable))
