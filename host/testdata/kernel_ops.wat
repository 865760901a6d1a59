;; Runs a list of operations on the kernel's allocator. The input is a list of
;; pairs of i32: (0, size) allocates a block and fills it with its number, (1, n)
;; frees block n, (2, n) checks the length and every byte of block n. The output is
;; the number of blocks. A block that is not as it was left is unreachable.
(module
  (import "mortise:host/1" "input_read" (func $read (param i32)))
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (import "extism:host/env" "input_length" (func $input_length (result i64)))
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "free" (func $free (param i64)))
  (import "extism:host/env" "length" (func $length (param i64) (result i64)))
  (import "extism:host/env" "load_u8" (func $load_u8 (param i64) (result i32)))
  (import "extism:host/env" "store_u8" (func $store_u8 (param i64 i32)))
  (import "extism:host/env" "load_u64" (func $load_u64 (param i64) (result i64)))
  (import "extism:host/env" "store_u64" (func $store_u64 (param i64 i64)))
  (memory (export "memory") 3)
  (global $blocks (mut i32) (i32.const 0))

  ;; where block n's offset and size are kept
  (func $slot (param $n i32) (result i32)
    (i32.add (i32.const 131072) (i32.shl (local.get $n) (i32.const 4))))
  ;; eight bytes that belong to block n
  (func $pattern (param $n i32) (result i64)
    (i64.mul (i64.extend_i32_u (i32.add (local.get $n) (i32.const 1))) (i64.const 0x0101010101010101)))

  (func $fill (param $n i32) (local $at i64) (local $end i64)
    (local.set $at (i64.load (call $slot (local.get $n))))
    (local.set $end (i64.add (local.get $at) (i64.load offset=8 (call $slot (local.get $n)))))
    (block $words (loop $next
      (br_if $words (i64.gt_u (i64.add (local.get $at) (i64.const 8)) (local.get $end)))
      (call $store_u64 (local.get $at) (call $pattern (local.get $n)))
      (local.set $at (i64.add (local.get $at) (i64.const 8))) (br $next)))
    (block $bytes (loop $next
      (br_if $bytes (i64.ge_u (local.get $at) (local.get $end)))
      (call $store_u8 (local.get $at) (i32.wrap_i64 (call $pattern (local.get $n))))
      (local.set $at (i64.add (local.get $at) (i64.const 1))) (br $next))))

  (func $check (param $n i32) (local $at i64) (local $end i64)
    (local.set $at (i64.load (call $slot (local.get $n))))
    (if (i64.eqz (local.get $at)) (then (return)))
    (if (i64.ne (call $length (local.get $at)) (i64.load offset=8 (call $slot (local.get $n)))) (then unreachable))
    (local.set $end (i64.add (local.get $at) (i64.load offset=8 (call $slot (local.get $n)))))
    (block $words (loop $next
      (br_if $words (i64.gt_u (i64.add (local.get $at) (i64.const 8)) (local.get $end)))
      (if (i64.ne (call $load_u64 (local.get $at)) (call $pattern (local.get $n))) (then unreachable))
      (local.set $at (i64.add (local.get $at) (i64.const 8))) (br $next)))
    (block $bytes (loop $next
      (br_if $bytes (i64.ge_u (local.get $at) (local.get $end)))
      (if (i32.ne (call $load_u8 (local.get $at)) (i32.and (i32.const 255) (i32.wrap_i64 (call $pattern (local.get $n))))) (then unreachable))
      (local.set $at (i64.add (local.get $at) (i64.const 1))) (br $next))))

  (func (export "run") (result i32) (local $i i32) (local $n i32) (local $op i32) (local $arg i32)
    (local.set $n (i32.wrap_i64 (call $input_length)))
    (call $read (i32.const 0))
    (global.set $blocks (i32.const 0))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $i) (local.get $n)))
      (local.set $op (i32.load (local.get $i)))
      (local.set $arg (i32.load offset=4 (local.get $i)))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (if (i32.eqz (local.get $op)) (then
        (i64.store (call $slot (global.get $blocks)) (call $alloc (i64.extend_i32_u (local.get $arg))))
        (i64.store offset=8 (call $slot (global.get $blocks)) (i64.extend_i32_u (local.get $arg)))
        (if (i32.and (i64.eqz (i64.load (call $slot (global.get $blocks)))) (i32.ne (local.get $arg) (i32.const 0))) (then unreachable))
        (call $fill (global.get $blocks))
        (global.set $blocks (i32.add (global.get $blocks) (i32.const 1)))))
      (if (i32.eq (local.get $op) (i32.const 1)) (then
        (call $check (local.get $arg))
        (call $free (i64.load (call $slot (local.get $arg))))
        (i64.store (call $slot (local.get $arg)) (i64.const 0))))
      (if (i32.eq (local.get $op) (i32.const 2)) (then (call $check (local.get $arg))))
      (br $next)))
    (i32.store (i32.const 0) (global.get $blocks))
    (call $write (i32.const 0) (i32.const 4))
    (i32.const 0)))
