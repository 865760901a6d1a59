;; Built with threads: a shared memory, atomic instructions, and waiting for another
;; thread that is not there.
(module
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (memory (export "memory") 1 4 shared)
  (data (i32.const 0) "ab")
  ;; adds one to a counter, answers what it was: 0 in a fresh state
  (func (export "count") (result i32) (i32.atomic.rmw.add (i32.const 8) (i32.const 1)))
  (func (export "write") (result i32) (call $write (i32.const 0) (i32.const 2)) (i32.const 0))
  ;; a lock that is never released
  (func (export "spin") (result i32)
    (loop $again (br_if $again (i32.eqz (i32.atomic.load (i32.const 64)))))
    (i32.const 0))
  ;; as a lock is waited for, with a time and without one
  (func (export "wait_hour") (result i32)
    (loop $again
      (br_if $again (i32.ne (memory.atomic.wait32 (i32.const 64) (i32.const 0) (i64.const 3600000000000)) (i32.const 0))))
    (i32.const 0))
  (func (export "wait_forever") (result i32)
    (memory.atomic.wait64 (i32.const 64) (i64.const 0) (i64.const -1)))
  (func (export "notify") (result i32) (memory.atomic.notify (i32.const 64) (i32.const 1)))
  ;; 0 when it grew to its maximum and not beyond
  (func (export "grow") (result i32)
    (drop (memory.grow (i32.const 3)))
    (i32.store (i32.const 200000) (i32.const 7))
    (i32.add (i32.sub (memory.size) (i32.const 4)) (i32.add (memory.grow (i32.const 1)) (i32.const 1)))))
