package phpjob

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Work is what a job does, where Laravel's own class says it.
type Work string

// What jobs do.
const (
	Own          Work = "job"          // a class of the application's
	Mail         Work = "mail"         // a mailable that was queued
	Notification Work = "notification" // a notification that was queued
	Listener     Work = "listener"     // a listener of an event
	Broadcast    Work = "broadcast"    // an event that goes to browsers
	Closure      Work = "closure"      // dispatch(function () { … })
	Method       Work = "method"       // Queue::push('Class@method', $data)
)

// Job is what a payload says of its job. Texts are as the site wrote them: secrets
// are in it.
type Job struct {
	DisplayName string
	// Class is the command's, Subject the mailable's, the notification's, the
	// listener's or the event's that it is about.
	Class, Subject string
	Work           Work
	// Properties are the subject's, the command's where it has none.
	Properties []Property
	// Tags are those of the payload or else, as Horizon finds them, the models among
	// the properties: "App\Models\Post:17".
	Tags []string
	// Chain are the classes of the jobs that follow, Batch is the batch's id.
	Chain []string
	Batch string
	// Encrypted says that the command is: its properties are not known.
	Encrypted bool
	// Limits as the payload names them; nil and zero where it does not.
	MaxTries, MaxExceptions *int64
	Timeout                 *int64 // seconds
	Backoff                 string // seconds, with commas
	RetryUntil              time.Time
	FailOnTimeout           bool
	// Problem is why properties could not be read.
	Problem string
}

// Name is the name by which lists, masks and the history know the job.
func (j *Job) Name() string { return cmp.Or(j.DisplayName, j.Class) }

// Property is a property of a job.
type Property struct {
	Name       string
	Visibility Visibility
	Class      string // that declares a private property
	// Value is as Value.Plain gives it.
	Value any
	// Models says that it names models of the database, and nothing else.
	Models bool
}

// envelope are the keys of a payload that this package reads.
type envelope struct {
	DisplayName, Job                                 string
	MaxTries, MaxExceptions, Timeout, Backoff, Delay json.RawMessage
	RetryUntil, TimeoutAt, FailOnTimeout, Tags, Data json.RawMessage
}

// keys are where the keys of a payload go.
func (e *envelope) keys() (texts map[string]*string, raws map[string]*json.RawMessage) {
	return map[string]*string{"displayName": &e.DisplayName, "job": &e.Job}, map[string]*json.RawMessage{
		"maxTries": &e.MaxTries, "maxExceptions": &e.MaxExceptions, "timeout": &e.Timeout, "backoff": &e.Backoff,
		"delay": &e.Delay, "retryUntil": &e.RetryUntil, "timeoutAt": &e.TimeoutAt, "failOnTimeout": &e.FailOnTimeout,
		"tags": &e.Tags, "data": &e.Data}
}

// readEnvelope reads the keys that are there whole; whole says that it is all of them.
func readEnvelope(raw []byte) (e envelope, whole bool) {
	texts, raws := e.keys()
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return e, false
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return e, false
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return e, false
		}
		name, _ := key.(string)
		if into := texts[name]; into != nil {
			_ = json.Unmarshal(value, into) // no text: it stays empty
		}
		if into := raws[name]; into != nil {
			*into = value
		}
	}
	_, err := d.Token()
	return e, err == nil
}

// Read reads a payload, or the beginning of one.
func Read(raw []byte) Job {
	e, whole := readEnvelope(raw)
	j := Job{DisplayName: e.DisplayName, Work: Own, Backoff: strings.Trim(string(e.Backoff), `" `),
		MaxTries: number(e.MaxTries), MaxExceptions: number(e.MaxExceptions), Timeout: number(e.Timeout),
		FailOnTimeout: string(e.FailOnTimeout) == "true", RetryUntil: moment(e.RetryUntil, e.TimeoutAt),
		Tags: tagsOf(e.Tags)}
	if j.Backoff == "" || j.Backoff == null {
		j.Backoff = strings.Trim(string(e.Delay), `" `)
	}
	if j.Backoff == null {
		j.Backoff = ""
	}
	switch {
	case !whole:
		j.Problem = "the payload is too large, or no JSON"
	default:
		j.readData(e)
	}
	if j.Tags == nil {
		j.Tags = []string{}
	}
	return j
}

const null = "null"

// number reads 3 and "3"; nil for anything else.
func number(raw json.RawMessage) *int64 {
	n, err := strconv.ParseInt(strings.Trim(string(raw), `" `), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

func moment(list ...json.RawMessage) time.Time {
	for _, raw := range list {
		if n := number(raw); n != nil && *n > 0 && *n < 1<<40 {
			return time.Unix(*n, 0).UTC()
		}
	}
	return time.Time{}
}

// maxTags bounds the tags of a job, maxTag the bytes of one.
const maxTags, maxTag = 100, 200

func tagsOf(raw json.RawMessage) (tags []string) {
	var list []any
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	for _, x := range list[:min(len(list), maxTags)] {
		if text, is := x.(string); is && len(text) <= maxTag && !slices.Contains(tags, text) {
			tags = append(tags, text)
		}
	}
	return tags
}

// readData reads what the job is given: a serialized command, or any JSON.
func (j *Job) readData(e envelope) {
	var data struct {
		CommandName *string `json:"commandName"`
		Command     *string `json:"command"`
	}
	if json.Unmarshal(e.Data, &data) != nil || data.Command == nil {
		j.Class, j.Work = e.Job, Method
		j.Properties = jsonProperties(e.Data)
		return
	}
	if data.CommandName != nil {
		j.Class = *data.CommandName
	}
	if !strings.HasPrefix(*data.Command, "O:") {
		j.Encrypted = true
		return
	}
	command, err := ReadValue(*data.Command)
	if err != nil {
		j.Problem = err.Error()
		return
	}
	j.Class = command.Class
	j.readCommand(&command)
}

// jsonProperties are the keys of what Queue::push was given.
func jsonProperties(raw json.RawMessage) (list []Property) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if len(raw) == 0 || d.Decode(&value) != nil || value == nil {
		return nil
	}
	all, is := value.(map[string]any)
	if !is {
		return []Property{{Name: "data", Visibility: Public, Value: value}}
	}
	for name, x := range all {
		list = append(list, Property{Name: name, Visibility: Public, Value: x})
	}
	slices.SortFunc(list, func(a, b Property) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// wrappers are Laravel's commands around something else, and the property that has it.
var wrappers = map[string]struct {
	work     Work
	property string
}{
	`Illuminate\Mail\SendQueuedMailable`:               {Mail, "mailable"},
	`Illuminate\Notifications\SendQueuedNotifications`: {Notification, "notification"},
	`Illuminate\Events\CallQueuedListener`:             {Listener, "data"},
	`Illuminate\Broadcasting\BroadcastEvent`:           {Broadcast, "event"},
	`Illuminate\Queue\CallQueuedClosure`:               {Closure, ""},
}

// readCommand reads a command that is not encrypted.
func (j *Job) readCommand(command *Value) {
	subject := command
	wrapper, wrapped := wrappers[command.Class]
	if wrapped {
		j.Work = wrapper.work
		if inner := innerObject(command.Property(wrapper.property)); inner != nil {
			subject = inner
			j.Subject = inner.Class
		}
	}
	if j.Work == Listener {
		j.Subject = textOf(command.Property("class"))
	}
	j.Properties = propertiesOf(subject)
	if j.Work == Notification {
		j.Properties = append(j.Properties, named(command, "notifiables", "channels")...)
	}
	if j.Tags == nil {
		j.Tags = modelTags(subject)
	}
	j.Batch = textOf(command.Property("batchId"))
	j.Chain = chainOf(command.Property("chained"))
}

// innerObject is the object of a wrapper; of a listener's arguments the first.
func innerObject(v *Value) *Value {
	if v != nil && v.Kind == String { // an older Laravel serializes the arguments by themselves
		list, err := ReadValue(v.Text)
		if err != nil {
			return nil
		}
		v = &list
	}
	if v != nil && v.Kind == Array && len(v.Items) > 0 {
		v = &v.Items[0].Value
	}
	if v == nil || v.Kind != Object {
		return nil
	}
	return v
}

// traits are the properties of Laravel's traits and mailables, which say nothing
// where they are empty; hidden are those that Job has elsewhere.
var (
	traits = []string{"connection", "queue", "chainConnection", "chainQueue", "chainCatchCallbacks", "delay",
		"afterCommit", "middleware", "locale", "from", "to", "cc", "bcc", "replyTo", "subject", "markdown", "html",
		"view", "textView", "viewData", "attachments", "rawAttachments", "diskAttachments", "callbacks", "theme",
		"mailer",
		"id", "tags", "metadata", "messageGroup", "deduplicator", "fakeBatch", "assertionableRenderStrings", "socket"}
	hidden = []string{"job", "chained", "batchId", "fakeBatch", "chainCatchCallbacks"}
)

func propertiesOf(v *Value) (list []Property) {
	for i := range v.Items {
		item := &v.Items[i]
		empty := item.Value.Kind == Null || item.Value.Kind == Array && len(item.Value.Items) == 0
		if slices.Contains(hidden, item.Key) || empty && slices.Contains(traits, item.Key) {
			continue
		}
		list = append(list, property(item))
	}
	return list
}

func property(item *Item) Property {
	return Property{Name: strings.ToValidUTF8(item.Key, "\uFFFD"), Visibility: item.Visibility, Class: item.Owner,
		Value: item.Value.Plain(), Models: item.Value.models() != nil}
}

func named(v *Value, names ...string) (list []Property) {
	for i := range v.Items {
		if item := &v.Items[i]; slices.Contains(names, item.Key) && item.Value.Kind != Null {
			list = append(list, property(item))
		}
	}
	return list
}

// modelTags are the tags that Horizon gives a job whose class has no tags(): the
// models, and those of collections, that are its properties.
func modelTags(v *Value) (tags []string) {
	for i := range v.Items {
		for _, name := range v.Items[i].Value.models() {
			if len(tags) < maxTags && len(name) <= maxTag && !slices.Contains(tags, name) {
				tags = append(tags, name)
			}
		}
	}
	return tags
}

// maxChain bounds how many jobs of a chain are named.
const maxChain = 100

// chainOf are the classes of a chain's further jobs; of an encrypted one it is not known.
func chainOf(v *Value) (classes []string) {
	if v == nil {
		return nil
	}
	for i := range v.Items[:min(len(v.Items), maxChain)] {
		classes = append(classes, classOf(v.Items[i].Value.Text))
	}
	return classes
}

// classOf is the class of a serialized object, read from its beginning.
func classOf(text string) string {
	r := reader{rest: text, total: len(text)}
	if r.expect("O:") == nil {
		if class, err := r.quoted(); err == nil {
			return clipped(class)
		}
	}
	return "(encrypted)"
}
