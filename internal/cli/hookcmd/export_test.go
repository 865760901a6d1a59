package hookcmd

// HooksRun returns an error on systems on which hooks do not run.
func HooksRun(system string) error { return hooksRun(system) }
