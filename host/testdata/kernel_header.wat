;; Overwrites the header of the Extism kernel.
(module (import "extism:host/env" "store_u64" (func $store (param i64 i64)))
  (func (export "used") (result i32) (call $store (i64.const 9) (i64.const 0xffffffffff)) (i32.const 0))
  (func (export "size") (result i32) (call $store (i64.const 17) (i64.const 0xffffffffff)) (i32.const 0))
  (func (export "far") (result i32) (call $store (i64.const 0xfffffff0) (i64.const 1)) (i32.const 0))
  (func (export "ok") (result i32) (i32.const 0)))
