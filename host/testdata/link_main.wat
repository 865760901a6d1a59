;; Imports from two linked modules that share one.
(module
  (import "base" "started" (func $started (result i32)))
  (import "base" "count" (func $count (result i32)))
  (import "base" "answer" (func $answer))
  (import "base" "outside" (func $outside))
  (import "base" "break" (func $break))
  (import "base" "rounds" (func $rounds (param i32)))
  (import "middle" "twice" (func $twice (result i32)))
  (import "middle" "spin" (func $spin))
  (import "middle" "fib" (func $fib (param i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 100) "main")
  ;; 11 + 100 * 4: the second call of a fresh base counts two in memory and in a global
  (func (export "fresh") (result i32) (i32.add (call $started) (i32.mul (i32.const 100) (call $twice))))
  (func (export "answer") (result i32) (call $answer) (i32.const 0))
  (func (export "outside") (result i32) (call $outside) (i32.const 0))
  (func (export "break") (result i32) (call $break) (i32.const 0))
  (func (export "spin") (result i32) (call $spin) (i32.const 0))
  (func (export "fib") (result i32) (call $fib (i32.const 90)))
  ;; a hundred calls of a hundred rounds each
  (func (export "work") (result i32) (local $n i32)
    (local.set $n (i32.const 100))
    (loop $again
      (call $rounds (i32.const 100))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n)))
    (i32.const 0)))
