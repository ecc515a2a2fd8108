package redact

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler hides secrets in log records before next writes them.
func Handler(next slog.Handler) slog.Handler { return handler{next} }

type handler struct{ next slog.Handler }

// Enabled implements slog.Handler.
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(attribute(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(list []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(list))
	for i, a := range list {
		clean[i] = attribute(a)
	}
	return handler{h.next.WithAttrs(clean)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.next.WithGroup(name)} }

func attribute(a slog.Attr) slog.Attr {
	value := a.Value.Resolve()
	switch value.Kind() {
	case slog.KindString:
		if SecretKey(a.Key) && value.String() != "" {
			return slog.String(a.Key, Mask)
		}
		return slog.String(a.Key, Text(value.String()))
	case slog.KindGroup:
		list := value.Group()
		clean := make([]slog.Attr, len(list))
		for i, inner := range list {
			clean[i] = attribute(inner)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(clean...)}
	case slog.KindAny:
		return anything(a.Key, value)
	default: // numbers, times, lengths of time
	}
	return slog.Attr{Key: a.Key, Value: value}
}

// anything keeps values that have nothing to hide as they are.
func anything(key string, value slog.Value) slog.Attr {
	if err, is := value.Any().(error); is {
		return slog.String(key, Text(err.Error()))
	}
	text := fmt.Sprintf("%+v", value.Any())
	if SecretKey(key) {
		return slog.String(key, Mask)
	}
	if clean := Text(text); clean != text {
		return slog.String(key, clean)
	}
	return slog.Attr{Key: key, Value: value}
}
