;; Linked by link_middle and link_main. It counts how often it was started and
;; called; both are there once in a fresh state.
(module
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (memory 1)
  (data (i32.const 100) "base")
  (global $started (mut i32) (i32.const 0))
  (global $calls (mut i32) (i32.const 0))
  (start $start)
  (func $start (global.set $started (i32.add (global.get $started) (i32.const 1))))
  (func (export "_initialize") (global.set $started (i32.add (global.get $started) (i32.const 10))))
  (func (export "_start") (global.set $started (i32.add (global.get $started) (i32.const 100))))
  ;; 11 when start function and _initialize ran once each
  (func (export "started") (result i32) (global.get $started))
  (func (export "count") (result i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
    (i32.add (i32.load (i32.const 0)) (global.get $calls)))
  ;; answers from its own memory
  (func (export "answer") (call $write (i32.const 100) (i32.const 4)))
  (func (export "outside") (call $write (i32.const 65533) (i32.const 4)))
  (func (export "break") (unreachable))
  (func (export "rounds") (param $n i32)
    (loop $again
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n)))))
