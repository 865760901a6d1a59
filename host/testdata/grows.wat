;; Grows its memory in each call, as a guest does whose allocator is fresh each time. The template has
;; grown too: by two pages, in _initialize.
(module
  (import "mortise:host/1" "input_read" (func $read (param i32)))
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (memory (export "memory") 2)
  (data (i32.const 131000) "the end of the data")
  (global $calls (mut i32) (i32.const 0))
  (func (export "_initialize")
    (drop (memory.grow (i32.const 2))) (i32.store (i32.const 262140) (i32.const 7)))
  ;; adds up the memory from a to b, which are multiples of 8
  (func $sum (param $a i32) (param $b i32) (result i64) (local $s i64)
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $a) (local.get $b)))
      (local.set $s (i64.add (i64.rotl (local.get $s) (i64.const 5)) (i64.load (local.get $a))))
      (local.set $a (i32.add (local.get $a) (i32.const 8)))
      (br $next)))
    (local.get $s))
  (func $end (result i32) (i32.shl (memory.size) (i32.const 16)))
  ;; The input is how many pages to add, how many bytes at their end to fill, and how many at their start,
  ;; as i32. The output is what the call found: how large the memory was, the sum of what it held,
  ;; how often the guest was called, and the sum of what was added.
  (func (export "grow") (result i32) (local $from i32) (local $size i32) (local $old i64)
    (local.set $size (memory.size))
    (local.set $from (call $end))
    (local.set $old (call $sum (i32.const 64) (local.get $from)))
    (call $read (i32.const 0))
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (if (i32.eq (memory.grow (i32.load (i32.const 0))) (i32.const -1)) (then (return (i32.const 9))))
    (i64.store (i32.const 16) (i64.extend_i32_u (local.get $size)))
    (i64.store (i32.const 24) (local.get $old))
    (i64.store (i32.const 32) (i64.extend_i32_u (global.get $calls)))
    (i64.store (i32.const 40) (call $sum (local.get $from) (call $end)))
    (if (i32.load (i32.const 4))
      (then (memory.fill (i32.sub (call $end) (i32.load (i32.const 4))) (i32.const 0x53) (i32.load (i32.const 4)))))
    (if (i32.load (i32.const 8))
      (then (memory.fill (local.get $from) (i32.const 0x54) (i32.load (i32.const 8)))))
    (call $write (i32.const 16) (i32.const 32))
    (i32.const 0))
  ;; the same without bounds: grows until it is refused, and fills everything
  (func (export "all") (result i32) (local $from i32)
    (local.set $from (call $end))
    (loop $more (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (memory.fill (local.get $from) (i32.const 0x55) (i32.sub (call $end) (local.get $from)))
    (i32.const 0)))
