// The compiler accepts a function without a body, as setGCPercent is, in a package with an assembly file.
