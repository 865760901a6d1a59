;; Uses fuel in a way that can be counted. The input is a number of rounds.
(module
  (import "mortise:host/1" "input_read" (func $read (param i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) ".")
  ;; 8 units, 1 for the input of 4 bytes, and 6 for each round.
  (func (export "count") (result i32) (local $n i32)
    (call $read (i32.const 0))
    (local.set $n (i32.load (i32.const 0)))
    (loop $again
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (i32.const 0))
  ;; Writes a dot to stderr after each 1,000 rounds, without end.
  (func (export "dots") (result i32) (local $n i32)
    (i32.store (i32.const 0) (i32.const 16))
    (i32.store (i32.const 4) (i32.const 1))
    (loop $line
      (local.set $n (i32.const 1000))
      (loop $again
        (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (drop (call $fd_write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
      (br $line))
    (unreachable)))
