;; A summarizer that says the same of everything, but for threads that begin with a certain letter: there it
;; traps (p), hangs (h), answers nothing (n) or a text that keeps nothing (l). A test writes letter and kind, and the
;; answer: 32 and 512 bytes.
(module
  (import "mortise:host/1" "output_write" (func $output_write (param i32 i32)))
  (import "extism:host/env" "input_load_u8" (func $input_load_u8 (param i64) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"trial\",\"version\":\"1.0.0\",\"abi\":{\"min\":1,\"max\":1}}")
  (data (i32.const 128) "................letter and kind.")
  (data (i32.const 160) "{\"text\":\"\"}")
  (data (i32.const 192) "{\"text\":\"Work was done on a repository.\"}")
  (data (i32.const 1024) "......................................................................................................................................................................................................................................................................................................................................................................................................................................................................................................................the answer")
  (func (export "describe") (result i32)
    (call $output_write (i32.const 0) (i32.const 58)) (i32.const 0))
  (func (export "summarize") (result i32)
    (local $kind i32)
    ;; the first letter of the thread, in {"abi":1,"thread_id":"t1"
    (if (i32.eq (call $input_load_u8 (i64.const 22)) (i32.load8_u (i32.const 128)))
      (then (local.set $kind (i32.load8_u (i32.const 129)))))
    (if (i32.eq (local.get $kind) (i32.const 112)) (then unreachable))
    (if (i32.eq (local.get $kind) (i32.const 104)) (then (loop $for_ever (br $for_ever))))
    (if (i32.eq (local.get $kind) (i32.const 110))
      (then (call $output_write (i32.const 160) (i32.const 11)) (return (i32.const 0))))
    (if (i32.eq (local.get $kind) (i32.const 108))
      (then (call $output_write (i32.const 192) (i32.const 41)) (return (i32.const 0))))
    (call $output_write (i32.const 1024) (i32.const 512))
    (i32.const 0)))
