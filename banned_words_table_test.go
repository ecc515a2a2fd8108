package cmsjobs_test

import "regexp"

// retiredTable is the vocabulary that is not ours: each word with the term that
// docs/glossary.md has for it.
var retiredTable = []retiredWord{
	// Literary words.
	retire(`mend(?:s|ed|ing)?`, "fix"),
	retire(`heal(?:s|ed|ing)?`, "repair"),
	retire(`anew|afresh`, "again, from the beginning"),
	retire(`dear`, "expensive"),
	retire(`whoever`, "anyone who, the caller"),
	retire(`till`, "until"),
	retire(`reckon(?:s|ed|ing)?`, "compute, count"),
	retire(`hence|thus|upon|unto|shall|needless|thither|whither|behold`, "so, on, must"),
	retireText(`(?:is|are|was|were|be|been|being) told`, "is notified, receives"),
	retireText(`told of`, "notified of"),
	retireText(`last words?`, "final message, answer"),
	retireText(`of (?:its|their|our) own`, "its own, separate"),
	retireText(`he|him|his`, "they, the user"),
	// Picture language.
	retire(`rooms?`, "package, services, space"),
	retire(`house(?:s|hold)?`, "system, architecture"),
	retire(`doors?`, "authorization, API"),
	retire(`shelf|shelves`, "table, record source"),
	retire(`lamps?`, "status"),
	retire(`trails?`, "audit log"),
	retire(`deeds?`, "action, audit entry"),
	retire(`summons?`, "signal"),
	retire(`verdicts?`, "outcome, status, verification"),
	// Jobs.
	retire(`bury|buried|buries|burying`, "fail permanently, move to failed_jobs"),
	retire(`revive(?:s|d)?|reviving`, "retry"),
	retire(`hasten(?:s|ed|ing)?`, "run now"),
	retire(`foretell|foretold`, "preview"),
	retire(`twins?`, "duplicate"),
	retire(`rosters?`, "worker registry"),
	retire(`stubborn(?:ly)?`, "unresponsive"),
	retire(`overtime|outlast`, "timeout"),
	retire(`lanes?`, "scan cursor"),
	retire(`sieves?|sift(?:s|ed)?`, "table scan"),
	retire(`legs?`, "index scan"),
	retire(`sketch(?:es)?`, "S2 view"),
	retireText(`(?:give|gives|given|gave|giving) (?:\w+ ){0,2}back`, "release"),
	retireText(`kinds? of (?:jobs?|work)`, "type"),
	// Backups.
	retire(`proofs?|proven|unproven`, "verification, verified"),
	retire(`sidecars?`, "manifest file"),
	retireText(`scratch (?:databases?|folders?|files?)`, "temporary database"),
	// Numbers of a plan that nobody else has. P1 to P14 and F1 to F19 are docs/reliability.md's.
	{standard: "say what it is", inText: regexp.MustCompile(`\bS[0-4]\.\d|\bchecklist\b`)},
	// Wrong plurals.
	{standard: "types.X, --type, --status", inText: regexp.MustCompile(`--kinds?\b|--state\b|\bkinds\.\w`)},
	{standard: "display.Plural", inText: regexp.MustCompile(`\w\w\(e?s\)(?:\W|$)`)},
}

// retiredKeys are names in JSON, settings, metrics, logs and SQL as a whole.
var retiredKeys = map[string]string{
	"kind": "type", "kinds": "types", "state": "status", "states": "statuses", "mend": "fix", "growth": "usage",
	"away":  "unavailable",
	"apart": "isolate", "apart_memory": "isolate_memory", "apart_time": "isolate_time", "deeds": "actions",
	"rooms":  "items",
	"hasten": "run_now", "revive": "retry", "forget": "delete", "told_at": "notified_at",
	"cmsjobs_orders": "cmsjobs_control_signals",
	"cmsjobs.kind":   "cmsjobs.type", "proven_id": "verified_id", "last_proven": "last_verified",
	"bad_proofs": "failed_verifications",
	"sidecar":    "manifest", "pieces": "parts", "setApart": "excluded", "allowed_topics": "allowed_types",
}

// wordExceptions are the places where a word is another's, or means another thing.
var wordExceptions = []struct{ path, word, text, reason string }{
	{"docs/screenshots/lighthouse/package-lock.json", "stubborn", "stubborn-", "names of packages"},
	{".golangci.yml", "revive", "", "the name of a linter"},
	{"deploy/kubernetes/", "kind", "", "a key of Kubernetes"},
	{"internal/trace/otlp.go", "kind", "", "a key of OpenTelemetry's protocol"},
	{"internal/handlers/backup/dump/dump.go", "kind", "", "the kind of an object of a database: table, view …"},
	{"internal/handlers/media/", "house", "house-large.jpg", "the name of a picture"},
	{"internal/handlers/sitemap/options_test.go", "state", "", "a column of a shop"},
	{"internal/storage/storagetest/server.go", "sidecar", "--sidecar", "a flag of versitygw"},
	{"internal/handlers/backup/repository/s3_test.go", "sidecar", "--sidecar", "a flag of versitygw"},
	{"deploy/compose/cms.sql", "he", "", "sample content"},
	{"config/", `\w+\(s\).?`, "(s)", "http(s), and a text of the decoder that is cut off"},
	{"internal/handlers/sitemap/schema.go", `\w+\(s\).?`, "http(s)", "http(s)"},
}

// wordsNotYet are the places whose words are replaced in work that is under way:
// the pages and the store, and the texts of the guards that quote them.
var wordsNotYet = []string{
	"bench/mutants/guards.go",
}
