package script

// AnyWindow is a value of the field Window of an [Ask]. Returned tokens then go back to all windows that still count.
// No real window starts in the first microsecond of 1970.
const AnyWindow = 1
