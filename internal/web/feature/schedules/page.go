package schedules

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

type schedulesPageData struct {
	Configured bool
	Entries    []scheduleRow
	Legend     []legendEntry
	Soon       []soonRow
	Zone       string // of the times in Soon
	web.RunActions
}

type scheduleRow struct {
	ops.ScheduleView
	Words string        // its cron line, to be read
	Strip template.HTML // how its last ticks went, oldest first
}

// legendEntry says what a square means.
type legendEntry struct {
	Outcome string
	Square  template.HTML
}

// soonTimes is how often an entry may stand among what runs soon.
const soonTimes = 4

// soonRow is when an entry runs in the next hours. One that runs more often than
// soonTimes stands there once: Times says how often it runs.
type soonRow struct {
	Entry, At string
	Times     int
	at        time.Time
}

// soonOf is when an entry runs, as clocks in its zone show it: an hour that comes twice
// in autumn stands there twice.
func soonOf(r jobs.ScheduleRecord) (rows []soonRow) {
	often := len(r.Soon) > soonTimes
	for _, t := range r.Soon {
		row := soonRow{Entry: r.Name, At: t.Format("15:04"), Times: 1, at: t}
		if often {
			row.Times = len(r.Soon)
			return []soonRow{row}
		}
		rows = append(rows, row)
	}
	return rows
}

// stripTicks is how many ticks the strip shows.
const stripTicks = 24

func (h handlers) schedulesPage(req *web.Request) error {
	v := schedulesPageData{Configured: h.Schedules != nil, Legend: legend()}
	var live string
	if v.RunActions, live = req.RunActions(); !v.Configured {
		return req.Show(web.PageView{Name: "schedules", Data: v, Ready: true})
	}
	ctx, lang := req.Ctx(), req.Printer()
	list, err := h.Schedules.Schedules(ctx)
	if err != nil {
		return fmt.Errorf("listing the schedule: %w", err)
	}
	for _, r := range list {
		ticks, err := h.Schedules.Ticks(ctx, r.Name, jobs.Page{Limit: stripTicks})
		if err != nil {
			return fmt.Errorf("listing the ticks of %s: %w", r.Name, err)
		}
		v.Zone = r.Zone
		v.Soon = append(v.Soon, soonOf(r)...)
		v.Entries = append(v.Entries, scheduleRow{req.View().Schedule(r), cronWords(lang, r.Cron),
			strip(lang, r.Name, ticks.Items)})
	}
	slices.SortStableFunc(v.Soon, func(a, b soonRow) int { return a.at.Compare(b.at) })
	return req.Show(web.PageView{Name: "schedules", Live: cmp.Or(live, web.LiveList), Data: v, Ready: true})
}

// square draws one tick of a strip at x: outcomes differ in height and fill, not in
// colour alone.
func square(outcome string, x int) string {
	shape := func(class string, y, height int) string {
		return fmt.Sprintf(`<rect class="%s" x="%d" y="%d" width="6" height="%d" rx="1.5"/>`, class, x, y, height)
	}
	switch outcome {
	case "completed":
		return shape("ok", 4, 8)
	case "retried":
		return shape("warn", 2, 12)
	case "failed", "crashed":
		return shape("bad", 0, 16)
	case jobs.PartialOutcome:
		return fmt.Sprintf(`<rect class="part-of" x="%d.5" y=".5" width="5" height="15" rx="1"/>`, x) + shape("part", 8, 8)
	case "missed":
		return fmt.Sprintf(`<rect class="miss" x="%d.5" y="4.5" width="5" height="7" rx="1"/>`, x)
	case "skipped":
		return fmt.Sprintf(`<rect class="skip2" x="%d" y="7" width="6" height="2"/>`, x)
	case "":
		return shape("none", 4, 8)
	}
	return shape("busy", 4, 8)
}

// legend has the outcomes that a strip distinguishes.
func legend() []legendEntry {
	var all []legendEntry
	for _, outcome := range []string{"completed", jobs.PartialOutcome, "retried", "failed", "missed", "skipped"} {
		all = append(all, legendEntry{outcome,
			template.HTML(`<svg class="strip" width="6" height="16">` + square(outcome, 0) + `</svg>`)})
	}
	return all
}

// strip draws how the last ticks went, newest first in ticks and last in the
// picture; its text counts the outcomes.
func strip(lang locale.Printer, name string, ticks []jobs.TickRecord) template.HTML {
	ticks = ticks[:min(len(ticks), stripTicks)]
	var squares strings.Builder
	counts, order := map[string]int{}, []string{}
	for i := range stripTicks {
		at := stripTicks - 1 - i
		if at >= len(ticks) {
			squares.WriteString(square("", i*8))
			continue
		}
		t := ticks[at]
		if counts[t.Outcome]++; counts[t.Outcome] == 1 {
			order = append(order, t.Outcome)
		}
		fmt.Fprintf(&squares, `<g><title>%s %s</title>%s</g>`, t.Tick.UTC().Format("2006-01-02 15:04 UTC"),
			template.HTMLEscapeString(lang.Name("tick.", t.Outcome)), square(t.Outcome, i*8))
	}
	said := []string{}
	for _, outcome := range order {
		said = append(said, fmt.Sprintf("%d %s", counts[outcome], lang.Name("tick.", outcome)))
	}
	return template.HTML(fmt.Sprintf(`<svg class="strip" width="%d" height="16" role="img" aria-label="%s">%s</svg>`,
		stripTicks*8-2, template.HTMLEscapeString(lang.Text("schedules.strip", len(ticks), name)+": "+
			strings.Join(said, ", ")), squares.String()))
}

func (h handlers) runScheduleByForm(req *web.Request) error {
	name, r, err := h.namedEntry(req)
	if err != nil {
		return err
	}
	receipt, err := h.runEntry(req, r)
	if err != nil {
		return err
	}
	req.Audit(name, r.Type+" as "+receipt.UUID)
	return req.Redirect(http.StatusSeeOther, web.Following("/admin/schedules", receipt.UUID))
}

type entryPageData struct {
	Entry   scheduleRow
	Cron    string
	Payload string
	Problem string
	History []jobs.TickRecord // newest first
}

// historyTicks is how many ticks the page of an entry shows.
const historyTicks = 12

func (h handlers) entryPage(req *web.Request) error {
	_, r, err := h.namedEntry(req)
	if err != nil {
		return err
	}
	v := req.View().Schedule(r)
	ticks, err := h.Schedules.Ticks(req.Ctx(), r.Name, jobs.Page{Limit: historyTicks})
	if err != nil {
		return fmt.Errorf("reading the ticks of %s: %w", r.Name, err)
	}
	return req.Show(web.PageView{
		Name: "entry", Data: entryPageData{scheduleRow{ScheduleView: v, Words: cronWords(req.Printer(), r.Cron)},
			r.Cron, web.Pretty(v.Payload), "", ticks.Items}, Ready: true})
}

// opposite is what takes a change of an entry back, where that is all of it.
var opposite = map[string]string{"pause": "continue", "continue": "pause"}

// changeEntry pauses, continues, resets an entry, or gives it another time and
// payload.
func (h handlers) changeEntry(req *web.Request) error {
	name, r, err := h.namedEntry(req)
	if err != nil {
		return err
	}
	cron, payload := strings.TrimSpace(req.FormValue("cron")), req.FormValue("payload")
	var change jobs.ScheduleChange
	switch auditEntry := req.FormValue("do"); auditEntry {
	case "pause", "continue":
		paused := auditEntry == "pause"
		change.Paused = &paused
	case "reset":
		change.Reset = true
		if yes, err := req.Sure(req.Printer().Text("entry.reset.ask", name), ""); !yes || err != nil {
			return err
		}
	case "save":
		change, err = h.entryChange(req, r, cron, payload)
	default:
		return web.RefuseField(http.StatusUnprocessableEntity, "do", "Choose pause, continue, reset or save.")
	}
	if err == nil {
		req.Audit(name, fmt.Sprintf("%s cron %q→%q", req.FormValue("do"), r.Cron, cron))
		if _, err = h.changeEntryTo(req, r, change); err == nil {
			if back := opposite[req.FormValue("do")]; back != "" &&
				(back == "pause" || req.MayRun(r.Type, r.Data) == nil) {
				return req.BackUndoable("/admin/schedules", web.Undo{Path: "/admin/schedules/" + url.PathEscape(name),
					Fields: [][2]string{{"do", back}}}, "entry.done."+req.FormValue("do"), name)
			}
			return req.Back("/admin/schedules", "entry.done", name)
		}
	}
	status, problem, ours := req.Refusal(err)
	if ours {
		return err
	}
	row := scheduleRow{ScheduleView: req.View().Schedule(r), Words: cronWords(req.Printer(), r.Cron)}
	return req.Show(web.PageView{Name: "entry", Data: entryPageData{row, cron, payload, problem, nil}, Ready: true,
		Status: status})
}

// entryChange is what of an entry a form changes.
func (h handlers) entryChange(req *web.Request, r jobs.ScheduleRecord, cron, payload string) (jobs.ScheduleChange,
	error) {
	var change jobs.ScheduleChange
	if cron != r.Cron {
		change.Cron = &cron
	}
	if payload == "" {
		return change, nil
	}
	data, err := req.Unmask(r.Type, []byte(payload), r.Data)
	if err != nil {
		return change, err
	}
	if !web.SameJSON(data, r.Data) {
		change.Data = data
	}
	if change.Cron == nil && change.Data == nil {
		return change, web.Refuse(http.StatusUnprocessableEntity, "Nothing was changed.")
	}
	return change, nil
}

// cronWords says a cron line in words; one that is too special stays a line.
func cronWords(lang locale.Printer, line string) string {
	if entry, follows := strings.CutPrefix(line, "after "); follows {
		return lang.Text("cron.after", entry)
	}
	f := strings.Fields(line)
	if len(f) != 5 {
		return line
	}
	if f[2] == "*" && f[3] == "*" && f[4] == "*" {
		return dailyWords(lang, line, f[0], f[1])
	}
	minute, mErr := strconv.Atoi(f[0])
	hour, hErr := strconv.Atoi(f[1])
	day, dErr := strconv.Atoi(f[2])
	at := fmt.Sprintf("%02d:%02d", hour, minute)
	switch {
	case mErr != nil || hErr != nil || f[3] != "*":
	case f[2] == "*" && len(f[4]) == 1 && f[4] >= "0" && f[4] <= "7":
		return lang.Text("cron.week", lang.Text("weekday."+strconv.Itoa(int(f[4][0]-'0')%7)), at)
	case dErr == nil && f[4] == "*":
		return lang.Text("cron.month", day, at)
	}
	return line
}

// dailyWords says a line that is the same on each day.
func dailyWords(lang locale.Printer, line, minutes, hours string) string {
	minute, mErr := strconv.Atoi(minutes)
	hour, hErr := strconv.Atoi(hours)
	step, stepped := strings.CutPrefix(minutes, "*/")
	hourStep, hourStepped := strings.CutPrefix(hours, "*/")
	switch {
	case minutes == "*" && hours == "*":
		return lang.Text("cron.minute")
	case stepped && hours == "*":
		return lang.Text("cron.minutes", step)
	case mErr == nil && hours == "*":
		return lang.Text("cron.hour", minute)
	case mErr == nil && hourStepped:
		return lang.Text("cron.hours", hourStep, minute)
	case mErr == nil && hErr == nil:
		return lang.Text("cron.day", fmt.Sprintf("%02d:%02d", hour, minute))
	}
	return line
}
