package script

// AnyWindow as an Ask's Window gives back to whatever windows are still counted.
const AnyWindow = 1
