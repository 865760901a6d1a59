;; Logs 1,000 messages of 1,024 bytes in one call, or 3,000 of one byte or none.
(module
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u64" (func $store_u64 (param i64 i64)))
  (import "extism:host/env" "store_u8" (func $store (param i64 i32)))
  (import "extism:host/env" "log_info" (func $info (param i64)))
  (import "extism:host/env" "log_debug" (func $debug (param i64)))
  (func (export "flood") (result i32) (local $i i32)
    (loop $more
      (call $info (call $alloc (i64.const 1024)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $more (i32.lt_u (local.get $i) (i32.const 1000))))
    (i32.const 0))
  (func $again (param $message i64) (local $i i32)
    (loop $more
      (call $info (local.get $message))
      (br_if $more (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 3000)))))
  (func (export "short") (result i32) (call $again (call $alloc (i64.const 1))) (i32.const 0))
  ;; makes the block's length zero, where the kernel keeps it before the block
  (func (export "empty") (result i32) (local $p i64)
    (local.set $p (call $alloc (i64.const 1)))
    (call $store_u64 (i64.sub (local.get $p) (i64.const 16)) (i64.const 0))
    (call $again (local.get $p)) (i32.const 0))
  (func (export "one") (result i32) (local $p i64)
    (local.set $p (call $alloc (i64.const 2)))
    (call $store (local.get $p) (i32.const 0x68))
    (call $store (i64.add (local.get $p) (i64.const 1)) (i32.const 0x69))
    (call $debug (local.get $p))
    (i32.const 0)))
