;; Imports from link_base, and is imported by link_main.
(module
  (import "base" "count" (func $count (result i32)))
  (import "base" "rounds" (func $rounds (param i32)))
  (func (export "twice") (result i32) (drop (call $count)) (call $count))
  (func (export "spin") (loop $again (call $rounds (i32.const 1000)) (br $again)))
  ;; fib without a loop
  (func $fib (export "fib") (param $n i32) (result i32)
    (if (result i32) (i32.lt_u (local.get $n) (i32.const 2)) (then (local.get $n))
      (else (i32.add
        (call $fib (i32.sub (local.get $n) (i32.const 1)))
        (call $fib (i32.sub (local.get $n) (i32.const 2))))))))
