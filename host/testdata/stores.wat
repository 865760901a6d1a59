;; Writes in every way, where it is told to, and adds all of its memory up.
(module
  (import "mortise:host/1" "input_read" (func $read (param i32)))
  (import "mortise:host/1" "messages_read" (func $messages (param i32 i32 i32 i32) (result i64)))
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (import "extism:host/env" "input_length" (func $len (result i64)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 4)
  (data (i32.const 70000) "a template that is not all zero")
  (data $segment "0123456789 a segment that is copied by memory.init, somewhat longer than a line of it")
  ;; One write of a kind. Addresses leave room for 2,000 bytes.
  (func $one (param $kind i32) (param $at i32)
    (block $host (block $random (block $grow (block $input (block $items (block $init (block $copy (block $fill (block $atomic
      (block $offset (block $v128 (block $f64 (block $i64 (block $i32 (block $i8
        (br_table $i8 $i32 $i64 $f64 $v128 $offset $atomic $fill $copy $init $items $input $grow $random $host (local.get $kind)))
      (i32.store8 (local.get $at) (i32.const 0x5a)) (return))
      (i32.store (local.get $at) (i32.const 0x5a5a5a5a)) (return))
      (i64.store (local.get $at) (i64.const 0x5a5a5a5a5a5a5a5a)) (return))
      (f64.store (local.get $at) (f64.const 90)) (return))
      (v128.store (local.get $at) (v128.const i32x4 0x5a 0x5a 0x5a 0x5a)) (return))
      (i64.store32 offset=1000 (local.get $at) (i64.const 0x5a5a5a5a)) (return))
      (drop (i32.atomic.rmw.add (i32.and (local.get $at) (i32.const -4)) (i32.const 0x5a))) (return))
      (memory.fill (local.get $at) (i32.const 0x5a) (i32.const 1500)) (return))
      (memory.copy (local.get $at) (i32.const 70000) (i32.const 30)) (return))
      (memory.init $segment (local.get $at) (i32.const 0) (i32.const 80)) (return))
      (drop (call $messages (i32.const 0) (i32.const 1) (local.get $at) (i32.const 2000))) (return))
      (call $read (local.get $at)) (return))
      (drop (memory.grow (i32.const 1))) (return))
      (drop (call $random (local.get $at) (i32.const 16))) (return)))
  ;; The input is a list of kinds and addresses, both i32, which writes may change.
  (func (export "run") (result i32) (local $i i32) (local $n i32)
    (local.set $n (i32.wrap_i64 (call $len)))
    (call $read (i32.const 131072))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (local.get $n)))
        (call $one
          (i32.and (i32.load (i32.add (i32.const 131072) (local.get $i))) (i32.const 15))
          (i32.rem_u (i32.load (i32.add (i32.const 131076) (local.get $i))) (i32.const 260000)))
        (local.set $i (i32.add (local.get $i) (i32.const 8)))
        (br $next)))
    (i32.const 0))
  (func (export "sum") (result i32) (local $i i32) (local $s i64)
    (loop $next
      (local.set $s (i64.add (i64.rotl (local.get $s) (i64.const 5)) (i64.load (local.get $i))))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 8))) (i32.const 262144))))
    (i64.store (i32.const 131072) (local.get $s))
    (call $write (i32.const 131072) (i32.const 8))
    (i32.const 0)))
