package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// bySQL inserts rows as an application would: the specification's JSON is the payload.
// What a request says beside the payload stands in columns.
func (x *specified) bySQL(t *testing.T, all []asked) (ids []string) {
	t.Helper()
	for i, a := range all {
		at, queue := time.Now(), "default"
		if a.RunAt != nil {
			at = *a.RunAt
		}
		if a.Queue != "" {
			queue = a.Queue
		}
		text := examples[i].text
		if !a.Flat {
			text = string(a.row(t))
		}
		statement := `INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at)
			VALUES (?, ?, 0, NULL, ?, ?)`
		args := []any{queue, text, at.Unix(), time.Now().Unix()}
		if x.layout == tables.Extended {
			statement = `INSERT INTO jobs (queue, name, payload_json, run_at) VALUES (?, ?, ?, ?)`
			args = []any{queue, a.Type, text, at.UTC().Format("2006-01-02 15:04:05")}
		}
		ids = append(ids, strconv.FormatInt(x.insert(t, statement, args...), 10))
	}
	return ids
}

// row is a request as the specifications' own tables would keep it: type and data.
func (a asked) row(t *testing.T) []byte {
	t.Helper()
	text, err := json.Marshal(struct {
		Type     string          `json:"type"`
		Data     json.RawMessage `json:"data"`
		Metadata json.RawMessage `json:"metadata,omitempty"`
	}{a.Type, a.Payload, a.Metadata})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// insert returns the number of the row that it inserts.
func (x *specified) insert(t *testing.T, statement string, args ...any) (number int64) {
	t.Helper()
	if x.db.Engine == jobstest.PostgreSQL {
		if err := x.db.Get(&number, x.db.Rebind(statement+" RETURNING id"), args...); err != nil {
			t.Fatal(err)
		}
		return number
	}
	done, err := x.db.Exec(statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	if number, err = done.LastInsertId(); err != nil {
		t.Fatal(err)
	}
	return number
}

// byHTTP sends the requests of S1's family.
func (x *specified) byHTTP(t *testing.T, all []asked) (ids []string) {
	t.Helper()
	for i, a := range all {
		var made map[string]any
		x.ask(201, "POST", "/api/jobs/enqueue", examples[i].request(t, a), bearer(x.admin), &made)
		for _, field := range []string{"id", "topic", "status", "run_at", "created"} {
			if _, there := made[field]; !there {
				t.Errorf("the answer to %s has no %s: %v", examples[i].name, field, made)
			}
		}
		ids = append(ids, fmt.Sprint(made["id"]))
	}
	return ids
}

// jobsOfExamples writes what is asked for into a file that programs read.
func jobsOfExamples(t *testing.T, all []asked) (file string) {
	t.Helper()
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "examples.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// goProgram enqueues by the client module, each job in a transaction of the
// application's own.
const goProgram = `package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/client"
)

func main() {
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var all []struct {
		Type, Queue       string
		Payload, Metadata json.RawMessage
		RunAt             time.Time ` + "`json:\"run_at\"`" + `
		MaxAttempts       int       ` + "`json:\"max_attempts\"`" + `
	}
	check(json.Unmarshal(text, &all))
	ctx := context.Background()
	db, err := sql.Open("mysql", os.Args[2])
	check(err)
	c, err := client.New(ctx, db, "mysql", client.Options{})
	check(err)
	for _, a := range all {
		tx, err := db.BeginTx(ctx, nil)
		check(err)
		job := client.Job{Type: a.Type, Payload: a.Payload, Queue: "default", RunAt: a.RunAt, MaxAttempts: a.MaxAttempts}
		if a.Queue != "" {
			job.Queue = a.Queue
		}
		if a.Metadata != nil {
			job.Metadata = a.Metadata
		}
		receipts, err := c.EnqueueTx(ctx, tx, job)
		check(err)
		check(tx.Commit())
		fmt.Println(receipts[0].ID)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
`

func (x *specified) byGo(t *testing.T, all []asked) []string {
	t.Helper()
	return strings.Fields(runIn(t, moduleOf(t, goProgram), nil, "go", "run", ".", jobsOfExamples(t, all), x.db.DSN))
}

// jsProgram enqueues by the SDK, waits for the ends, and looks at every field that the
// SDK's types promise.
const jsProgram = `import { readFileSync } from "node:fs";
import { JobsService } from %q;
const jobs = new JobsService({ baseUrl: process.env.CMSJOBS_URL, token: process.env.CMSJOBS_TOKEN });
const made = [];
for (const asked of JSON.parse(readFileSync(process.argv[2], "utf8"))) {
  const receipt = await jobs.enqueue(asked);
  for (const field of ["id", "type", "status", "run_at", "enqueued_at"])
    if (!(field in receipt)) throw new Error(asked.type + ": the receipt has no " + field);
  made.push([asked, receipt.id]);
}
for (const [asked, id] of made) {
  let job = await jobs.get(id);
  const end = Date.now() + 60_000;
  while (job.detail !== "delayed" && job.status !== "completed") {
    if (job.status === "failed" || Date.now() > end) throw new Error(JSON.stringify(job));
    await new Promise((done) => setTimeout(done, 20));
    job = await jobs.get(id);
  }
  for (const field of ["id", "type", "queue", "payload", "metadata", "status", "attempts", "max_attempts", "run_at",
    "enqueued_at"])
    if (!(field in job)) throw new Error(asked.type + ": the job has no " + field);
  console.log(id);
}
`

func (x *specified) byJavaScript(t *testing.T, all []asked) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.mjs")
	program := fmt.Sprintf(jsProgram, filepath.Join(javaScriptSDK(t), "dist", "index.js"))
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "node", file, jobsOfExamples(t, all))
	c.Env = append(os.Environ(), "CMSJOBS_URL="+x.url, "CMSJOBS_TOKEN="+x.admin)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, x.log())
	}
	return strings.Fields(string(out))
}
