;; Describes itself in MessagePack, and has no opinion: the least that a plugin can do.
(module
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\84\a4name\a4noop\a7version\a51.0.0\a3abi\82\a3min\01\a3max\01\a5hooks\91\83\a5phase\b0before_inference\a4mode\a9transform\a8messages\a4none")
  (func (export "describe") (result i32) (call $write (i32.const 0) (i32.const 100)) (i32.const 0))
  (func (export "on_phase") (result i32) (i32.const 0)))
