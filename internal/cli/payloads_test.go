package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/schema"
	"github.com/cmsjobs/cmsjobs/internal/schema/texts"
	"github.com/cmsjobs/cmsjobs/internal/testgolden"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
)

// everyType is the registry of a program in which all parts are on.
func everyType(t *testing.T) *jobs.Registry {
	t.Helper()
	a := &commandLine{Process: app.Process{Version: "dev", Err: io.Discard, Now: time.Now}, environ: []string{
		"CMSJOBS_CONFIG=" + os.DevNull, "CMSJOBS_ANALYTICS_WEEKLY=true", "CMSJOBS_MAIL_MAILBOX_HOST=imap.example.com",
		"CMSJOBS_MAIL_MAILBOX_USERNAME=u", "CMSJOBS_MAIL_MAILBOX_PASSWORD=p"}}
	a.global.set = []string{"external.commands.x.program=/bin/true", "external.calls.x.url=https://example.com/"}
	registry, _, done, err := a.allTypes()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	if len(registry.Types()) < 15 {
		t.Fatalf("only %v are registered", registry.Types())
	}
	return registry
}

// paths are the names of all fields of a payload, those inside objects included.
func paths(o *schema.Object, before string) (all []string) {
	for _, f := range o.Fields {
		all = append(all, before+f.Name)
		for _, inner := range []*schema.Object{f.Object, itemsOf(f)} {
			if inner != nil {
				all = append(all, paths(inner, before+f.Name+".")...)
			}
		}
	}
	return all
}

func itemsOf(f schema.Field) *schema.Object {
	if f.Items == nil {
		return nil
	}
	return f.Items.Object
}

func TestEveryFieldHasATextInEachLanguage(t *testing.T) {
	registry := everyType(t)
	for _, language := range []string{"en", "vi"} {
		all := texts.All(language)
		for _, name := range registry.Types() {
			e, _ := registry.Lookup(name)
			want := append(paths(e.Schema, ""), texts.About)
			for _, path := range want {
				if all[name][path] == "" {
					t.Errorf("no %s text for %s: %s", language, name, path)
				}
			}
			for path := range all[name] {
				if !slices.Contains(want, path) {
					t.Errorf("a %s text for %s: %s, which does not exist", language, name, path)
				}
			}
			delete(all, name)
		}
		delete(all, "jobs.bulk") // made by the pages
		if len(all) > 0 {
			t.Errorf("%s texts for types that do not exist: %v", language, all)
		}
	}
}

// Every example is a payload that its type takes, and every choice and default is
// what the tag's type says.
func TestExamplesAreTaken(t *testing.T) {
	registry := everyType(t)
	for _, name := range registry.Types() {
		e, _ := registry.Lookup(name)
		if e.Maker == jobs.Anyone && name != "command.run" && name != "http.call" { // names are the configuration's
			if err := e.CheckNew(e.Schema.Example()); err != nil {
				t.Errorf("%s: %v", e.Schema.Example(), err)
			}
		}
	}
}

const (
	beginPayloads = "<!-- payloads: made by a test -->\n"
	endPayloads   = "<!-- payloads: end -->\n"
)

// TestPayloadsAreDocumented compares docs/jobs.md with the payloads' Go types;
// -update writes it.
func TestPayloadsAreDocumented(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "jobs.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), beginPayloads)
	_, after, ends := strings.Cut(rest, endPayloads)
	if !begins || !ends {
		t.Fatal("docs/jobs.md has no place for the payloads")
	}
	var b strings.Builder
	registry := everyType(t)
	for _, name := range registry.Types() {
		e, _ := registry.Lookup(name)
		fmt.Fprintf(&b, "\n### Payload of %s\n\n%s %s, at most %s each.\n", name, texts.Of("en", name, texts.About),
			display.Sprintf("%d {attempt|attempts}", e.Policy.MaxAttempts), e.Policy.Timeout)
		if len(e.Schema.Fields) == 0 {
			continue
		}
		b.WriteString("\n| field | type | default | meaning |\n|---|---|---|---|\n")
		for _, row := range fieldRows(name, "", e.Schema) {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", row[0], row[1], code(row[2]),
				strings.ReplaceAll(row[3], "|", `\|`))
		}
	}
	testgolden.Check(t, path, []byte(before+beginPayloads+b.String()+"\n"+endPayloads+after))
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// TestPayloadTypesOfTheSDKAreDocumented compares sdk/js/src/payloads.ts with the
// payloads' Go types; -update writes it.
func TestPayloadTypesOfTheSDKAreDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString("// Made by a test from the service's own types: make golden.\n\n" +
		"/** The payload of each job type that the service has. */\nexport interface Payloads {\n")
	registry := everyType(t)
	for _, name := range registry.Types() {
		e, _ := registry.Lookup(name)
		if e.Maker == jobs.Service {
			continue
		}
		fmt.Fprintf(&b, "  /** %s */\n  %q: ", texts.Of("en", name, texts.About), name)
		b.WriteString(typeScript(name, "", e.Schema, "  ") + ";\n")
	}
	b.WriteString("}\n")
	testgolden.Check(t, filepath.Join("..", "..", "sdk", "js", "src", "payloads.ts"), []byte(b.String()))
}

func typeScript(jobType, path string, o *schema.Object, indent string) string {
	if len(o.Fields) == 0 {
		return "Record<string, never>"
	}
	var b strings.Builder
	b.WriteString("{\n")
	for _, f := range o.Fields {
		optional := "?"
		if f.Required {
			optional = ""
		}
		if text := texts.Of("en", jobType, path+f.Name); text != "" {
			fmt.Fprintf(&b, "%s  /** %s */\n", indent, text)
		}
		fmt.Fprintf(&b, "%s  %s%s: %s;\n", indent, f.Name, optional, scriptValue(jobType, path+f.Name, f, indent+"  "))
	}
	b.WriteString(indent + "}")
	return b.String()
}

func scriptValue(jobType, path string, f schema.Field, indent string) string {
	if f.Choices != nil {
		return `"` + strings.Join(f.Choices, `" | "`) + `"`
	}
	var one func(v schema.Value) string
	one = func(v schema.Value) string {
		text := map[string]string{schema.String: "string", schema.Boolean: "boolean", schema.Integer: "number",
			schema.Number: "number", schema.Map: "Record<string, unknown>", "": "unknown"}[v.Type]
		switch {
		case v.Object != nil:
			text = typeScript(jobType, path+".", v.Object, indent)
		case v.Items != nil:
			text = "Array<" + one(*v.Items) + ">"
		}
		switch v.Also {
		case "":
			return text
		case schema.Map:
			return text + " | Record<string, unknown>"
		case schema.Integer:
			return text + " | number"
		case schema.Array:
			return text + " | never[]"
		}
		return text + " | " + v.Also
	}
	return one(f.Value)
}

// misspelt is a payload of a type with one wrong field each, and the right names.
func misspelt(e jobs.Entry) map[string]string {
	wrong := map[string]string{}
	for _, path := range paths(e.Schema, "") {
		if !strings.Contains(path, ".") {
			wrong[path+"x"] = path
		}
	}
	return wrong
}

// TestAMisspeltFieldIsRefusedEverywhere misspells every field of every type, over
// HTTP; the first one of each type on the command line and, where it is there, by
// the JavaScript SDK.
func TestAMisspeltFieldIsRefusedEverywhere(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	s := startService(t, "queue: {worker: false}\ncms: {url: \"https://www.example.com\"}\nschedule: {enabled: false}\nanalytics: {weekly: true}\nmail: "+
		"{mailbox: {host: imap.example.com, username: u, password: p}}\nsitemap: {dir: "+t.TempDir()+
		"}\nbackup: {dir: "+t.TempDir()+"}\nexternal: {commands: {x: {program: /bin/true}}, calls: {x: {url: "+
		"\"https://example.com/\"}}}\n", dsn)
	token, registry := s.token("admin"), everyType(t)
	type refusal struct{ Type, Field, Suggestion string }
	var first []refusal
	for _, name := range registry.Types() {
		e, _ := registry.Lookup(name)
		if e.Maker == jobs.Service {
			continue
		}
		for wrong, right := range misspelt(e) {
			body := fmt.Sprintf(`{"type":%q,"payload":{%q:null}}`, name, wrong)
			status, answer := s.try("POST", "/api/v1/jobs", body, bearer(token))
			var p struct {
				Detail string
				Errors []struct{ Field, Detail string }
			}
			if err := json.Unmarshal(answer, &p); err != nil || status != 422 || len(p.Errors) != 1 ||
				p.Errors[0].Field != "payload."+wrong ||
				!strings.Contains(p.Detail, fmt.Sprintf("did you mean %q?", right)) {
				t.Errorf("%s: %d %s", body, status, answer)
			}
			if len(first) == 0 || first[len(first)-1].Type != name {
				first = append(first, refusal{name, wrong, right})
			}
		}
	}
	for _, r := range first {
		if !slices.Contains([]string{"analytics.weekly", "command.run", "http.call"}, r.Type) {
			want(t, call(t, []string{"CMSJOBS_SITEMAP_DIR=" + t.TempDir(),
				"CMSJOBS_BACKUP_DIR=" + t.TempDir(), "CMSJOBS_CMS_URL=https://www.example.com"}, dsn, "enqueue", r.Type,
				fmt.Sprintf(`{%q:null}`, r.Field)), exitUsage, fmt.Sprintf("did you mean %q?", r.Suggestion))
		}
	}
	want(t, call(t, nil, dsn, "enqueue", "mail.sned"), exitUsage, `did you mean "mail.send"?`)
	want(t, call(t, nil, dsn, "enqueue", "--help", "email.send"), 0, "recipient", "mail.send: Send a mail")
	want(t, call(t, nil, dsn, "types", "show", "mail.sned"), exitNotFound, `did you mean "mail.send"?`)
	want(t, call(t, nil, dsn, "__complete", "enqueue", "mail."), 0, "mail.send\tSend a mail")
	want(t, call(t, nil, dsn, "__complete", "--set", "queue.po"), 0, "queue.poll=", "queue.poll_first=")
	want(t, call(t, nil, dsn, "__complete", "pause", ""), 0, "")
	want(t, call(t, nil, dsn, "__complete", "jobs", "list", "--status", ""), 0, "processing")

	list, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "main.mjs")
	text := fmt.Sprintf(`import { JobsService, JobsError } from %q;
const jobs = new JobsService({ baseUrl: %q, token: %q });
for (const { Type, Field, Suggestion } of %s) {
  try {
    await jobs.enqueue({ type: Type, payload: { [Field]: null } });
    console.log("accepted", Type, Field);
  } catch (e) {
    if (!(e instanceof JobsError) || e.status !== 422 || !e.message.includes('did you mean "' + Suggestion + '"?'))
      console.log(Type, Field, String(e));
  }
}`, filepath.Join(javaScriptSDK(t), "dist", "index.js"), s.url, token, list)
	if err := os.WriteFile(program, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := runIn(t, ".", nil, "node", program); out != "" {
		t.Error(out)
	}
}

// TestASynonymIsItsField: a row of another program names the recipient in its own
// words, and has a field too many. The mail goes to the recipient; log and result
// name the field.
func TestASynonymIsItsField(t *testing.T) {
	dsn, mails := newDatabase(t, jobstest.SQLite, tables.Stock), t.TempDir()
	s := startService(t, fmt.Sprintf("queue: {poll_first: 20ms, poll: 100ms}\nnotify: {mail: false}\nmail: {driver: "+
		"files, dir: %q, from: a@example.com}\n", mails), dsn)
	admin := bearer(s.token("admin"))
	db := openSQLite(t, dsn)
	defer db.Close()
	row := func(uuid, data string) map[string]any {
		db.MustExec("INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) VALUES "+
			"('default', ?, 0, NULL, 0, 0)", fmt.Sprintf(`{"type":"email.send","uuid":%q,"data":%s}`, uuid, data))
		s.awaitEnd(uuid, admin)
		var job map[string]any
		s.ask(200, "GET", "/api/v1/jobs/"+uuid, "", admin, &job)
		return job
	}
	job := row("0b1e2d3c-0000-4000-8000-00000000000a",
		`{"recipient":"victim@example.com","subject":"s","body":"b","urgnt":true}`)
	if text, _ := json.Marshal(job); job["status"] != "completed" || !strings.Contains(string(text),
		`"ignored":["urgnt"]`) {
		t.Errorf("the row ended as %s", text)
	}
	files, err := filepath.Glob(filepath.Join(mails, "*.eml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	if letter, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(letter), "victim@example.com") {
		t.Errorf("%v: %s", err, letter)
	}
	var log struct{ Lines []struct{ Text string } }
	s.ask(200, "GET", "/api/v1/jobs/0b1e2d3c-0000-4000-8000-00000000000a/log", "", admin, &log)
	if len(log.Lines) == 0 || !strings.Contains(log.Lines[0].Text, `has no field "urgnt"`) {
		t.Errorf("the log says %+v", log)
	}
	job = row("0b1e2d3c-0000-4000-8000-00000000000b", `{"template":"password-reset","data":{"name":"x"}}`)
	if text, _ := json.Marshal(job); job["status"] != "failed" || !strings.Contains(string(text), "no recipient") {
		t.Errorf("a mail for nobody ended as %s", text)
	}
	for body, want := range map[string]int{
		`{"type":"mail.send","payload":{"template":"password-reset","data":{}}}`:               422,
		`{"type":"mail.send","payload":{"template":"contact","data":{}}}`:                      201,
		`{"type":"mail.send","payload":{"to":"administrators","subject":"s","body":"b"}}`:      201,
		`{"type":"mail.send","payload":{"to":"a@b.example","recipient":"c@d.ex","body":""}}`:   422,
		`{"type":"backup.generate","payload":{"include_database":false,"includeFiles":false}}`: 422, // needs one
	} {
		if status, answer := s.try("POST", "/api/v1/jobs", body, admin); status != want {
			t.Errorf("%s: %d, want %d: %s", body, status, want, answer)
		}
	}
}

// TestEveryResultIsReadInSentences asks each type for the summary of a result without
// anything, in both languages.
func TestEveryResultIsReadInSentences(t *testing.T) {
	texts, err := web.Texts(feature.All(feature.Ports{}))
	if err != nil {
		t.Fatal(err)
	}
	vietnamese, registry := texts.Errors("vi"), everyType(t)
	for _, name := range registry.Types() {
		entry, _ := registry.Lookup(name)
		if entry.Summary == nil {
			t.Errorf("%s: nothing says what its results hold; jobs.Results registers their type", name)
			continue
		}
		for _, result := range []string{`null`, `{"skipped":"older than 1h0m0s when its turn came"}`,
			`{"ignored":["a","b"]}`} {
			summary, err := entry.Summary(json.RawMessage(result))
			if err != nil || len(summary.Sentences) == 0 {
				t.Errorf("%s: %s is read as %v: %v", name, result, summary, err)
			}
			for _, s := range summary.Sentences {
				if vietnamese[s.Form] == "" || strings.Count(s.Form, "%s") != len(s.Args) {
					t.Errorf("%s says %q of %v; in Vietnamese %q", name, s.Form, s.Args, vietnamese[s.Form])
				}
			}
		}
	}
}
