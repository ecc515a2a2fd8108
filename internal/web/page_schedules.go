package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

type schedulesPageData struct {
	Configured bool
	Entries    []scheduleRow
	RunActions
}

type scheduleRow struct {
	ops.ScheduleView
	Words string        // its cron line, to be read
	Strip template.HTML // how its last ticks went, oldest first
}

// stripTicks is how many ticks the strip shows.
const stripTicks = 30

func (s *Server) schedulesPage(c echo.Context) error {
	v := schedulesPageData{Configured: s.cfg.Schedules != nil}
	var live string
	if v.RunActions, live = s.runActions(c); !v.Configured {
		return s.show(c, "schedules", "schedules.title", v)
	}
	ctx, lang := c.Request().Context(), s.printer(c)
	list, err := s.cfg.Schedules.Schedules(ctx)
	if err != nil {
		return fmt.Errorf("listing the schedule: %w", err)
	}
	for _, r := range list {
		ticks, err := s.cfg.Schedules.Ticks(ctx, r.Name, jobs.Page{Limit: stripTicks})
		if err != nil {
			return fmt.Errorf("listing the ticks of %s: %w", r.Name, err)
		}
		v.Entries = append(v.Entries, scheduleRow{s.viewer(c).Schedule(r), cronWords(lang, r.Cron), strip(lang, r.Name, ticks.Items)})
	}
	return s.showLive(c, "schedules", "schedules.title", firstOf(live, LiveList), v)
}

// strip draws how ticks went, one field a tick.
func strip(lang locale.Printer, name string, ticks []jobs.TickRecord) template.HTML {
	if len(ticks) == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="strip" viewBox="0 0 %d 18" preserveAspectRatio="xMinYMid" role="img" aria-label="%s">`, stripTicks*5, template.HTMLEscapeString(lang.Text("schedules.strip", len(ticks), name)))
	for i := len(ticks) - 1; i >= 0; i-- {
		t := ticks[i]
		class := map[string]string{"completed": "ok", "enqueued": "go", "retried": "gap", "buried": "no", "failed": "no", "crashed": "no", "missed": "gap"}[t.Outcome]
		fmt.Fprintf(&out, `<rect class="%s" x="%d" y="1" width="4" height="16" rx="1"><title>%s %s</title></rect>`, class, (len(ticks)-1-i)*5, t.Tick.UTC().Format("2006-01-02 15:04 UTC"), template.HTMLEscapeString(t.Outcome))
	}
	out.WriteString(`</svg>`)
	return template.HTML(out.String())
}

func (s *Server) runScheduleByForm(c echo.Context) error {
	name, r, err := s.namedEntry(c)
	if err != nil {
		return err
	}
	receipt, err := s.runEntry(c, r)
	if err != nil {
		return err
	}
	setAuditTarget(c, name, r.Type+" as "+receipt.UUID)
	return c.Redirect(http.StatusSeeOther, following("/admin/schedules", receipt.UUID))
}

type entryPageData struct {
	Entry   scheduleRow
	Cron    string
	Payload string
	Problem string
}

func (s *Server) entryPage(c echo.Context) error {
	_, r, err := s.namedEntry(c)
	if err != nil {
		return err
	}
	v := s.viewer(c).Schedule(r)
	return s.show(c, "entry", "entry.title", entryPageData{scheduleRow{ScheduleView: v, Words: cronWords(s.printer(c), r.Cron)}, r.Cron, pretty(v.Payload), ""})
}

// changeEntry pauses, continues, resets an entry, or gives it another time and
// payload.
func (s *Server) changeEntry(c echo.Context) error {
	name, r, err := s.namedEntry(c)
	if err != nil {
		return err
	}
	cron, payload := strings.TrimSpace(c.FormValue("cron")), c.FormValue("payload")
	var change jobs.ScheduleChange
	switch auditEntry := c.FormValue("do"); auditEntry {
	case "pause", "continue":
		paused := auditEntry == "pause"
		change.Paused = &paused
	case "reset":
		change.Reset = true
		if yes, err := s.sure(c, s.printer(c).Text("entry.reset.ask", name), ""); !yes || err != nil {
			return err
		}
	case "save":
		change, err = s.entryChange(c, r, cron, payload)
	default:
		return fieldError(http.StatusUnprocessableEntity, "do", "Choose pause, continue, reset or save.")
	}
	if err == nil {
		setAuditTarget(c, name, fmt.Sprintf("%s cron %q→%q", c.FormValue("do"), r.Cron, cron))
		if err = s.changeEntryTo(c, r, change); err == nil {
			return s.back(c, "/admin/schedules", "entry.done", name)
		}
	}
	p := s.problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		return err
	}
	pageData := entryPageData{scheduleRow{ScheduleView: s.viewer(c).Schedule(r), Words: cronWords(s.printer(c), r.Cron)}, cron, payload, p.in(s.printer(c))}
	return s.write(c, p.Status, "entry", s.pageView(c, "entry", "entry.title", pageData))
}

// entryChange is what of an entry a form changes.
func (s *Server) entryChange(c echo.Context, r jobs.ScheduleRecord, cron, payload string) (jobs.ScheduleChange, error) {
	var change jobs.ScheduleChange
	if cron != r.Cron {
		change.Cron = &cron
	}
	if payload == "" {
		return change, nil
	}
	data, err := s.unmasked(c, r.Type, []byte(payload), r.Data)
	if err != nil {
		return change, err
	}
	if !sameJSON(data, r.Data) {
		change.Data = data
	}
	if change.Cron == nil && change.Data == nil {
		return change, httpError(http.StatusUnprocessableEntity, "Nothing was changed.")
	}
	return change, nil
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if decodeNumbers(a, &x) != nil || decodeNumbers(b, &y) != nil {
		return false
	}
	left, err := json.Marshal(x)
	right, err2 := json.Marshal(y)
	return errors.Join(err, err2) == nil && string(left) == string(right)
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
	minute, mErr := strconv.Atoi(f[0])
	hour, hErr := strconv.Atoi(f[1])
	day, dErr := strconv.Atoi(f[2])
	at := fmt.Sprintf("%02d:%02d", hour, minute)
	everyDay, everyHour := f[2] == "*" && f[3] == "*" && f[4] == "*", f[1] == "*"
	step, stepped := strings.CutPrefix(f[0], "*/")
	hourStep, hourStepped := strings.CutPrefix(f[1], "*/")
	switch {
	case f[0] == "*" && everyHour && everyDay:
		return lang.Text("cron.minute")
	case stepped && everyHour && everyDay:
		return lang.Text("cron.minutes", step)
	case mErr == nil && everyHour && everyDay:
		return lang.Text("cron.hour", minute)
	case mErr == nil && hourStepped && everyDay:
		return lang.Text("cron.hours", hourStep, minute)
	case mErr == nil && hErr == nil && everyDay:
		return lang.Text("cron.day", at)
	case mErr == nil && hErr == nil && f[2] == "*" && f[3] == "*" && len(f[4]) == 1 && f[4] >= "0" && f[4] <= "7":
		return lang.Text("cron.week", lang.Text("weekday."+strconv.Itoa(int(f[4][0]-'0')%7)), at)
	case mErr == nil && hErr == nil && dErr == nil && f[3] == "*" && f[4] == "*":
		return lang.Text("cron.month", day, at)
	}
	return line
}
