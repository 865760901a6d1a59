;; Reads items of its call. The input is six numbers of 32 bits: the first item and the
;; one behind the last, where to put them and how long they are, and where the output begins
;; and how long it is. What the host returns is at 24.
(module
  (import "mortise:host/1" "input_read" (func $input (param i32)))
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (import "mortise:host/1" "messages_read" (func $read (param i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "read") (result i32)
    (call $input (i32.const 0))
    (i64.store (i32.const 24) (call $read (i32.load (i32.const 0)) (i32.load (i32.const 4)) (i32.load (i32.const 8)) (i32.load (i32.const 12))))
    (call $write (i32.load (i32.const 16)) (i32.load (i32.const 20)))
    (i32.const 0))
  ;; Goes on reading, and never comes to an end.
  (func (export "forever") (result i32)
    (loop $again
      (drop (call $read (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 64000)))
      (br $again))
    (i32.const 0))
  ;; What stands in memory before anything is read.
  (func (export "before") (result i32)
    (call $write (i32.const 0) (i32.const 4096))
    (i32.const 0)))
