;; Changes a little of its state: four pages of memory and a global.
(module
  (memory (export "memory") 17)
  (global $n (mut i32) (i32.const 0))
  (func (export "touch") (result i32)
    (global.set $n (i32.add (global.get $n) (i32.const 1)))
    (i32.store (i32.const 8) (global.get $n))
    (i32.store (i32.const 5000) (global.get $n))
    (i32.store (i32.const 9000) (global.get $n))
    (i32.store (i32.const 20000) (global.get $n))
    (i32.const 0))
  (func (export "ok") (result i32) (i32.const 0))
  ;; Some 60,000 rounds of arithmetic.
  (func (export "work") (result i32) (local $i i32) (local $h i32)
    (loop $again
      (local.set $h (i32.add (i32.mul (local.get $h) (i32.const 31)) (local.get $i)))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 60000))))
    (i32.store (i32.const 8) (local.get $h))
    (i32.const 0)))
