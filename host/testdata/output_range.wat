;; Names ranges outside of its memory to the bulk imports.
(module
  (import "mortise:host/1" "input_read" (func $read (param i32)))
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (memory 1)
  (func (export "write") (result i32) (call $write (i32.const 65530) (i32.const 7)) (i32.const 0))
  (func (export "write_wrap") (result i32) (call $write (i32.const -1) (i32.const 2)) (i32.const 0))
  (func (export "read") (result i32) (call $read (i32.const 65534)) (i32.const 0))
  (func (export "write_last") (result i32) (call $write (i32.const 65536) (i32.const 0)) (i32.const 0)))
