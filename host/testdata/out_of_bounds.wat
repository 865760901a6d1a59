;; Reads far beyond its memory.
(module (memory 1) (func $run (export "run") (result i32) (i32.load (i32.const 0x7fffffff))))
