package main

// usageError is a mistake on the command line that only the work itself could
// find. It ends the program with the status that kong gives to all others.
type usageError struct{ error }

// ExitCode implements kong.ExitCoder.
func (usageError) ExitCode() int { return 80 }

func (e usageError) Unwrap() error { return e.error }
