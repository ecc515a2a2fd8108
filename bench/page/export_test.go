package page

var AwaitQuiet = awaitQuiet
