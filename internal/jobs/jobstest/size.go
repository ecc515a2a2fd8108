package jobstest

import (
	"os"
	"strconv"
	"testing"
)

// Size is how often a test tries something: usual in CI, full under make heavy, and any
// number that the variable says.
func Size(t testing.TB, variable string, usual, full int) int {
	t.Helper()
	if text := os.Getenv(variable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s=%q is no number from 1", variable, text)
		}
		return n
	}
	if os.Getenv("CMSJOBS_SOAK") == "1" {
		return full
	}
	return usual
}

// Kills is the variable with the number of processes that a test kills.
const Kills = "CMSJOBS_TEST_KILLS"
