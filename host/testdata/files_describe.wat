;; Its describe opens the file a and keeps the descriptor in memory; read opens
;; it only if there is none yet.
(module
  (import "mortise:host/1" "output_write" (func $write (param i32 i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_pread" (func $pread (param i32 i32 i32 i64 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "a")
  (func $ready
    (if (i32.eqz (i32.load (i32.const 16))) (then
      (drop (call $open (i32.const 3) (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 16))))))
  (func (export "describe") (result i32) (call $ready) (i32.const 0))
  (func (export "read") (result i32)
    (call $ready)
    (i32.store (i32.const 32) (i32.const 1024)) (i32.store (i32.const 36) (i32.const 100))
    (if (call $pread (i32.load (i32.const 16)) (i32.const 32) (i32.const 1) (i64.const 0) (i32.const 40)) (then unreachable))
    (call $write (i32.const 1024) (i32.load (i32.const 40))) (i32.const 0)))
