;; The kernel of the native engine: the functions of extism:host/env that move
;; bytes between a guest and its host. One instance stands beside each plugin
;; instance and is linked Wasm to Wasm, so that none of these calls leaves
;; native code.
;;
;; Memory: a header of 1 KiB, then blocks. A block is 16 bytes of header (length,
;; class) and its data; its offset is that of the data. Blocks come in classes,
;; class k holding up to 16 << k bytes, and a freed block waits in the list of
;; its class. The host reads and writes the header directly, checks everything
;; that it reads, and clears the used part after each call.
;;
;;    0  input offset    i64     32  error offset  i64
;;    8  input length    i64     40  top of heap   i64
;;   16  output offset   i64     48  highest top before a reset, i64
;;   24  output length   i64     64  free lists, one i64 for each of 28 classes
;; What needs the host is imported from it and exported again, so that a guest
;; sees one module.
(module
  (import "mortise:native" "config_get" (func $config_get (param i64) (result i64)))
  (import "mortise:native" "var_get" (func $var_get (param i64) (result i64)))
  (import "mortise:native" "var_set" (func $var_set (param i64 i64)))
  (import "mortise:native" "http_request" (func $http_request (param i64 i64) (result i64)))
  (import "mortise:native" "http_status_code" (func $http_status_code (result i32)))
  (import "mortise:native" "http_headers" (func $http_headers (result i64)))
  (import "mortise:native" "get_log_level" (func $get_log_level (result i32)))
  (import "mortise:native" "log_trace" (func $log_trace (param i64)))
  (import "mortise:native" "log_debug" (func $log_debug (param i64)))
  (import "mortise:native" "log_info" (func $log_info (param i64)))
  (import "mortise:native" "log_warn" (func $log_warn (param i64)))
  (import "mortise:native" "log_error" (func $log_error (param i64)))
  (export "config_get" (func $config_get))
  (export "var_get" (func $var_get))
  (export "var_set" (func $var_set))
  (export "http_request" (func $http_request))
  (export "http_status_code" (func $http_status_code))
  (export "http_headers" (func $http_headers))
  (export "get_log_level" (func $get_log_level))
  (export "log_trace" (func $log_trace))
  (export "log_debug" (func $log_debug))
  (export "log_info" (func $log_info))
  (export "log_warn" (func $log_warn))
  (export "log_error" (func $log_error))

  (memory (export "memory") 1)

  ;; class of a size: the least k with 16 << k >= size
  (func $class (param $size i64) (result i64)
    (if (result i64) (i64.le_u (local.get $size) (i64.const 16))
      (then (i64.const 0))
      (else
        (i64.sub (i64.const 60) (i64.clz (i64.sub (local.get $size) (i64.const 1)))))))

  ;; grow memory until it reaches to end; 0 when it cannot
  (func $reach (param $end i64) (result i32)
    (local $have i64)
    (local.set $have (i64.shl (i64.extend_i32_u (memory.size)) (i64.const 16)))
    (if (i64.le_u (local.get $end) (local.get $have)) (then (return (i32.const 1))))
    (if (i64.gt_u (local.get $end) (i64.const 0xffff0000)) (then (return (i32.const 0))))
    (i32.ne (i32.const -1)
      (memory.grow (i32.wrap_i64 (i64.shr_u
        (i64.add (i64.sub (local.get $end) (local.get $have)) (i64.const 0xffff))
        (i64.const 16))))))

  (func (export "alloc") (param $size i64) (result i64)
    (local $class i64) (local $list i32) (local $block i64) (local $end i64)
    (if (i64.eqz (local.get $size)) (then (return (i64.const 0))))
    (if (i64.gt_u (local.get $size) (i64.const 0x7fffffff)) (then (return (i64.const 0))))
    (local.set $class (call $class (local.get $size)))
    (local.set $list (i32.add (i32.const 64) (i32.shl (i32.wrap_i64 (local.get $class)) (i32.const 3))))
    (local.set $block (i64.load (local.get $list)))
    (if (i64.ne (local.get $block) (i64.const 0))
      (then ;; the first word of a free block's data is the next one; the guest can
            ;; have written it
        (if (i32.eqz (call $inside (local.get $block))) (then unreachable))
        (i64.store (local.get $list) (i64.load (i32.wrap_i64 (local.get $block)))))
      (else
        (local.set $block (i64.add (i64.load (i32.const 40)) (i64.const 16)))
        (local.set $end (i64.add (local.get $block) (i64.shl (i64.const 16) (local.get $class))))
        (if (i32.eqz (call $reach (local.get $end))) (then (return (i64.const 0))))
        (i64.store (i32.const 40) (local.get $end))
        (i64.store (i32.wrap_i64 (i64.sub (local.get $block) (i64.const 8))) (local.get $class))))
    (i64.store (i32.wrap_i64 (i64.sub (local.get $block) (i64.const 16))) (local.get $size))
    (local.get $block))

  ;; whether an offset may be that of a block: inside the heap, behind a header
  (func $inside (param $offset i64) (result i32)
    (i32.and
      (i64.ge_u (local.get $offset) (i64.const 1040))
      (i64.lt_u (local.get $offset) (i64.load (i32.const 40)))))

  (func (export "free") (param $offset i64)
    (local $class i64) (local $list i32)
    (if (i32.eqz (call $inside (local.get $offset))) (then (return)))
    (local.set $class (i64.load (i32.wrap_i64 (i64.sub (local.get $offset) (i64.const 8)))))
    (if (i64.gt_u (local.get $class) (i64.const 27)) (then (return)))
    ;; a length of zero marks a free block: freeing twice does nothing
    (if (i64.eqz (i64.load (i32.wrap_i64 (i64.sub (local.get $offset) (i64.const 16))))) (then (return)))
    (i64.store (i32.wrap_i64 (i64.sub (local.get $offset) (i64.const 16))) (i64.const 0))
    (local.set $list (i32.add (i32.const 64) (i32.shl (i32.wrap_i64 (local.get $class)) (i32.const 3))))
    (i64.store (i32.wrap_i64 (local.get $offset)) (i64.load (local.get $list)))
    (i64.store (local.get $list) (local.get $offset)))

  (func $length (export "length") (param $offset i64) (result i64)
    (if (i32.eqz (call $inside (local.get $offset))) (then (return (i64.const 0))))
    (i64.load (i32.wrap_i64 (i64.sub (local.get $offset) (i64.const 16)))))
  (func (export "length_unsafe") (param $offset i64) (result i64)
    (call $length (local.get $offset)))

  ;; A guest reads below the top of the heap and nowhere else: how far the memory
  ;; reaches depends on earlier calls. Offsets beyond 32 bits trap too.
  (func $readable (param $offset i64) (param $n i64) (result i32)
    (if (i32.or
          (i64.gt_u (local.get $offset) (i64.const 0xffffffff))
          (i64.gt_u (i64.add (local.get $offset) (local.get $n)) (i64.load (i32.const 40))))
      (then unreachable))
    (i32.wrap_i64 (local.get $offset)))
  (func (export "load_u8") (param i64) (result i32)
    (i32.load8_u (call $readable (local.get 0) (i64.const 1))))
  (func (export "load_u64") (param i64) (result i64)
    (i64.load (call $readable (local.get 0) (i64.const 8))))

  ;; a guest writes to the used part of the heap and nowhere else: the header is
  ;; the kernel's, and what lies beyond would outlive the call
  (func $writable (param $offset i64) (param $n i64) (result i32)
    (if (i32.or
          (i64.lt_u (local.get $offset) (i64.const 1024))
          (i32.or
            (i64.gt_u (local.get $offset) (i64.const 0xffffffff))
            (i64.gt_u (i64.add (local.get $offset) (local.get $n)) (i64.load (i32.const 40)))))
      (then unreachable))
    (i32.wrap_i64 (local.get $offset)))
  (func (export "store_u8") (param i64 i32)
    (i32.store8 (call $writable (local.get 0) (i64.const 1)) (local.get 1)))
  (func (export "store_u64") (param i64 i64)
    (i64.store (call $writable (local.get 0) (i64.const 8)) (local.get 1)))

  (func (export "input_set") (param i64 i64)
    (i64.store (i32.const 0) (local.get 0)) (i64.store (i32.const 8) (local.get 1)))
  (func (export "input_offset") (result i64) (i64.load (i32.const 0)))
  (func (export "input_length") (result i64) (i64.load (i32.const 8)))
  (func (export "input_load_u8") (param i64) (result i32)
    (if (i64.ge_u (local.get 0) (i64.load (i32.const 8))) (then (return (i32.const 0))))
    (i32.load8_u (call $readable (i64.add (i64.load (i32.const 0)) (local.get 0)) (i64.const 1))))
  ;; At the end of the input: the bytes that there are, and zeros above them.
  (func (export "input_load_u64") (param $at i64) (result i64)
    (local $from i64) (local $left i64) (local $word i64)
    (if (i64.ge_u (local.get $at) (i64.load (i32.const 8))) (then (return (i64.const 0))))
    (local.set $from (i64.add (i64.load (i32.const 0)) (local.get $at)))
    (local.set $left (i64.sub (i64.load (i32.const 8)) (local.get $at)))
    (if (i64.ge_u (local.get $left) (i64.const 8))
      (then (return (i64.load (call $readable (local.get $from) (i64.const 8))))))
    (drop (call $readable (local.get $from) (local.get $left)))
    (loop $next
      (local.set $left (i64.sub (local.get $left) (i64.const 1)))
      (local.set $word (i64.or
        (i64.shl (local.get $word) (i64.const 8))
        (i64.load8_u (i32.wrap_i64 (i64.add (local.get $from) (local.get $left))))))
      (br_if $next (i64.ne (local.get $left) (i64.const 0))))
    (local.get $word))

  (func (export "output_set") (param i64 i64)
    (i64.store (i32.const 16) (local.get 0)) (i64.store (i32.const 24) (local.get 1)))
  (func (export "output_offset") (result i64) (i64.load (i32.const 16)))
  (func (export "output_length") (result i64) (i64.load (i32.const 24)))

  (func (export "error_set") (param i64) (i64.store (i32.const 32) (local.get 0)))
  (func (export "error_get") (result i64) (i64.load (i32.const 32)))

  ;; Forget everything. The host clears the memory after the call, up to the
  ;; highest top, which is kept for it.
  (func (export "reset") (local $high i64)
    (local.set $high (i64.load (i32.const 48)))
    (if (i64.gt_u (i64.load (i32.const 40)) (local.get $high))
      (then (local.set $high (i64.load (i32.const 40)))))
    (memory.fill (i32.const 0) (i32.const 0) (i32.const 1024))
    (i64.store (i32.const 48) (local.get $high))
    (i64.store (i32.const 40) (i64.const 1024)))
  ;; The pages that this call uses. The memory may be larger after another call.
  (func (export "memory_bytes") (result i64)
    (i64.and (i64.add (i64.load (i32.const 40)) (i64.const 0xffff)) (i64.const -65536)))
)
