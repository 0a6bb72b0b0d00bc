package conformance

import (
	"testing"
	"time"
)

// patience is how long a state may take that is expected to come at once. Generous: the tests say
// what happens, the benchmark says how fast.
const patience = 30 * time.Second

// eventually waits until look says that it is satisfied; on failure it shows what look saw last.
func eventually(t *testing.T, limit time.Duration, what string, look func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		satisfied, seen := look()
		if satisfied {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v, but %s", what, limit, seen)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// throughout fails as soon as look is not satisfied during the whole span.
func throughout(t *testing.T, span time.Duration, what string, look func() (bool, string)) {
	t.Helper()
	for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if satisfied, seen := look(); !satisfied {
			t.Fatalf("%s: ended, %s", what, seen)
		}
	}
}
