;; Looks into the key-value space while an instance is made.
(module
  (import "mortise:host/1" "kv_get" (func $get (param i64) (result i64)))
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (memory (export "memory") 1)
  (func (export "_initialize") (drop (call $get (call $alloc (i64.const 1)))))
  (func (export "run") (result i32) (i32.const 0)))
