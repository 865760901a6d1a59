;; The start function adds what the data says to a counter. What it did must be there
;; once in each instance, however it was made.
(module
  (memory (export "memory") 1)
  (data (i32.const 16) "\01\00\00\00")
  (data (i32.const 16) "\02\00\00\00")
  (data (i32.const 65536) "")
  (global $starts (mut i32) (i32.const 0))
  (func $start
    (global.set $starts (i32.add (global.get $starts) (i32.const 1)))
    (i32.store (i32.const 8) (i32.add (i32.load (i32.const 8)) (i32.load (i32.const 16))))
    (i32.store (i32.const 16) (i32.const 0)))
  (start $start)
  ;; 21: one start, which saw 2 at 16 and cleared it
  (func (export "look") (result i32)
    (i32.add (i32.load (i32.const 16))
      (i32.add (i32.mul (i32.load (i32.const 8)) (i32.const 10)) (global.get $starts))))
  (func (export "break") (i32.store (i32.const 8) (i32.const 7)) (unreachable)))
