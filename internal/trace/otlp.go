package trace

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// The shapes of OTLP/JSON (opentelemetry-proto, trace/v1): ids in hexadecimal,
// 64-bit integers as strings.
type (
	otlpDocument struct {
		ResourceSpans []otlpResource `json:"resourceSpans"`
	}
	otlpResource struct {
		Resource struct {
			Attributes []otlpAttribute `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []otlpScope `json:"scopeSpans"`
	}
	otlpScope struct {
		Scope struct {
			Name string `json:"name"`
		} `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpSpan struct {
		TraceID      string          `json:"traceId"`
		SpanID       string          `json:"spanId"`
		ParentSpanID string          `json:"parentSpanId,omitempty"`
		Name         string          `json:"name"`
		Kind         Kind            `json:"kind"`
		Start        string          `json:"startTimeUnixNano"`
		End          string          `json:"endTimeUnixNano"`
		Attributes   []otlpAttribute `json:"attributes,omitempty"`
		Status       otlpStatus      `json:"status"`
	}
	otlpStatus struct {
		Code    int    `json:"code,omitempty"` // 2 is an error
		Message string `json:"message,omitempty"`
	}
	otlpAttribute struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

func document(resource map[string]any, list []Span) otlpDocument {
	var scope otlpScope
	scope.Scope.Name = "cmsjobs"
	for _, s := range list {
		scope.Spans = append(scope.Spans, spanOf(s))
	}
	r := otlpResource{ScopeSpans: []otlpScope{scope}}
	r.Resource.Attributes = attributes(resource)
	return otlpDocument{[]otlpResource{r}}
}

func spanOf(s Span) otlpSpan {
	o := otlpSpan{TraceID: hex.EncodeToString(s.Trace[:]), SpanID: hex.EncodeToString(s.Span[:]), Name: s.Name,
		Kind:  s.Kind,
		Start: nanos(s.Start), End: nanos(s.End), Attributes: attributes(s.Attributes)}
	if s.Parent != [8]byte{} {
		o.ParentSpanID = hex.EncodeToString(s.Parent[:])
	}
	if s.Error != "" {
		o.Status = otlpStatus{Code: 2, Message: s.Error}
	}
	return o
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func attributes(values map[string]any) []otlpAttribute {
	list := make([]otlpAttribute, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		list = append(list, otlpAttribute{key, value(values[key])})
	}
	return list
}

func value(v any) map[string]any {
	switch v := v.(type) {
	case bool:
		return map[string]any{"boolValue": v}
	case float64:
		return map[string]any{"doubleValue": v}
	case int64:
		return map[string]any{"intValue": strconv.FormatInt(v, 10)}
	}
	return map[string]any{"stringValue": fmt.Sprint(v)}
}
