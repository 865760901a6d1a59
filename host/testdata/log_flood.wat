;; Logs 1,000 messages of 1,024 bytes in one call.
(module
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u8" (func $store (param i64 i32)))
  (import "extism:host/env" "log_info" (func $info (param i64)))
  (import "extism:host/env" "log_debug" (func $debug (param i64)))
  (func (export "flood") (result i32) (local $i i32)
    (loop $more
      (call $info (call $alloc (i64.const 1024)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $more (i32.lt_u (local.get $i) (i32.const 1000))))
    (i32.const 0))
  (func (export "one") (result i32) (local $p i64)
    (local.set $p (call $alloc (i64.const 2)))
    (call $store (local.get $p) (i32.const 0x68))
    (call $store (i64.add (local.get $p) (i64.const 1)) (i32.const 0x69))
    (call $debug (local.get $p))
    (i32.const 0)))
