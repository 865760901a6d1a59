;; Exports with names that fool a terminal, a log or who reads: control characters, an escape
;; sequence, text that runs the other way, marks that cannot be seen, quotes.
(module
  (func $f (result i32) (i32.const 1))
  (export "a\00b\1b[2J\0d\0a" (func $f))
  (export "safe\e2\80\aegnp.exe\e2\81\a6\e2\80\8b\ef\bb\bf" (func $f))
  (export "\"; launch(\"" (func $f))
  (export "\7f\c2\85" (func $f)))
