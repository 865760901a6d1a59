;; Writes where it is told to, and adds all of its memory up.
(module
  (import "mortise:host/1" "input_read" (func $read (param i32)))
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (import "extism:host/env" "input_length" (func $len (result i64)))
  (import "extism:host/env" "log_info" (func $log (param i64)))
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (memory (export "memory") 128)
  (data (i32.const 70000) "a template that is not all zero")
  ;; The input is a list of addresses, as i32, which writes may change. Between two writes the guest calls
  ;; the host, which may put it on another thread.
  (func (export "scatter") (result i32) (local $i i32) (local $n i32)
    (local.set $n (i32.wrap_i64 (call $len)))
    (call $read (i32.const 131072))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (local.get $n)))
        (i32.store8 (i32.and (i32.load (i32.add (i32.const 131072) (local.get $i))) (i32.const 0x7fffff)) (i32.const 0x5a))
        (call $log (call $alloc (i64.const 1)))
        (local.set $i (i32.add (local.get $i) (i32.const 4)))
        (br $next)))
    (i32.const 0))
  (func (export "sum") (result i32) (local $i i32) (local $s i64)
    (loop $next
      (local.set $s (i64.add (i64.rotl (local.get $s) (i64.const 5)) (i64.load (local.get $i))))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 8))) (i32.const 8388608))))
    (i64.store (i32.const 0) (local.get $s))
    (call $write (i32.const 0) (i32.const 8))
    (i32.const 0))
  ;; Only reads, so it maps pages without making them its own.
  (func (export "peek") (result i32) (local $i i32)
    (loop $next
      (drop (i32.load (local.get $i)))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 36864))) (i32.const 8388600))))
    (i32.const 0)))
