;; An admission policy with one answer for the host's sample, and another one for all other
;; threads. A test writes both: 64 bytes of JSON each.
(module
  (import "mortise:host/1" "output_write" (func $output_write (param i32 i32)))
  (import "extism:host/env" "input_load_u8" (func $input_load_u8 (param i64) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"admit\",\"version\":\"1.0.0\",\"abi\":{\"min\":1,\"max\":1}}")
  (data (i32.const 256) "................the answer to the sample........................")
  (data (i32.const 512) "................the answer to all others........................")
  (func (export "describe") (result i32)
    (call $output_write (i32.const 0) (i32.const 58)) (i32.const 0))
  (func (export "admit") (result i32)
    ;; the first letter of the thread, in {"abi":1,"thread_id":"sample"
    (if (i32.eq (call $input_load_u8 (i64.const 22)) (i32.const 115))
      (then (call $output_write (i32.const 256) (i32.const 64)))
      (else (call $output_write (i32.const 512) (i32.const 64))))
    (i32.const 0)))
