;; Asks a model by its role, which needs no grant to be linked. Input of chat: a byte with the
;; length of the question's head, the head, the prompt; of info: the role. Output: the result
;; as i64, then the answer, or the text of host_error.
(module
  (import "mortise:host/1" "input_read" (func $read (param i32)))
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (import "mortise:host/1" "host_error" (func $error (result i64)))
  (import "extism:host/env" "input_length" (func $input_length (result i64)))
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "length" (func $length (param i64) (result i64)))
  (import "extism:host/env" "load_u8" (func $load (param i64) (result i32)))
  (import "extism:host/env" "store_u8" (func $store (param i64 i32)))
  (import "mortise:host/1" "model_chat" (func $chat (param i64 i64) (result i64)))
  (import "mortise:host/1" "model_info" (func $info (param i64) (result i64)))
  (memory (export "memory") 48)

  ;; The input goes to 1024. Returns its length.
  (func $in (result i32) (call $read (i32.const 1024)) (i32.wrap_i64 (call $input_length)))
  ;; A new block with n bytes from p; 0 for none.
  (func $block (param $p i32) (param $n i32) (result i64) (local $at i64) (local $i i32)
    (if (i32.eqz (local.get $n)) (then (return (i64.const 0))))
    (local.set $at (call $alloc (i64.extend_i32_u (local.get $n))))
    (loop $next
      (call $store (i64.add (local.get $at) (i64.extend_i32_u (local.get $i)))
        (i32.load8_u (i32.add (local.get $p) (local.get $i))))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $at))
  ;; The output is r and then the bytes of the block b.
  (func $out (param $r i64) (param $b i64) (result i32) (local $n i64) (local $i i64)
    (i64.store (i32.const 0) (local.get $r))
    (if (i64.gt_s (local.get $b) (i64.const 0)) (then (local.set $n (call $length (local.get $b)))))
    (if (i64.gt_u (local.get $n) (i64.const 0)) (then (loop $next
      (i32.store8 offset=8 (i32.wrap_i64 (local.get $i)) (call $load (i64.add (local.get $b) (local.get $i))))
      (br_if $next (i64.lt_u (local.tee $i (i64.add (local.get $i) (i64.const 1))) (local.get $n))))))
    (call $write (i32.const 0) (i32.add (i32.const 8) (i32.wrap_i64 (local.get $n))))
    (i32.const 0))
  ;; The first part of the input, behind its length, and the rest.
  (func $first (result i64) (call $block (i32.const 1025) (i32.load8_u (i32.const 1024))))
  (func $rest (param $n i32) (result i64) (local $k i32)
    (local.set $k (i32.add (i32.const 1) (i32.load8_u (i32.const 1024))))
    (call $block (i32.add (i32.const 1024) (local.get $k)) (i32.sub (local.get $n) (local.get $k))))

  (func $answer (param $r i64) (result i32)
    (call $out (local.get $r)
      (if (result i64) (i64.lt_s (local.get $r) (i64.const 0)) (then (call $error)) (else (local.get $r)))))
  (func (export "chat") (result i32) (local $n i32)
    (local.set $n (call $in)) (call $answer (call $chat (call $first) (call $rest (local.get $n)))))
  ;; asks twice
  (func (export "chat_twice") (result i32) (local $n i32)
    (local.set $n (call $in))
    (drop (call $chat (call $first) (call $rest (local.get $n))))
    (call $answer (call $chat (call $first) (call $rest (local.get $n)))))
  (func (export "info") (result i32) (local $n i32)
    (local.set $n (call $in)) (call $answer (call $info (call $block (i32.const 1024) (local.get $n))))))
