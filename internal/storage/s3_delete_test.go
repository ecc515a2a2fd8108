package storage

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

func TestManyObjectsAreDeletedWithFewCalls(t *testing.T) {
	for name, s := range map[string]*S3{"versitygw": newVersity(t), "proxy": newFaultyS3(t).store(t, nil)} {
		t.Run(name, func(t *testing.T) {
			var keys []string
			for i := range 25 {
				key := fmt.Sprintf("backup-ü %d.json", i)
				if err := s.Put(t.Context(), key, strings.NewReader("x"), PutOptions{}); err != nil {
					t.Fatal(err)
				}
				keys = append(keys, key)
			}
			if err := s.DeleteAll(t.Context(), append(keys[1:], "not-there.json")); err != nil {
				t.Fatal(err)
			}
			var left []string
			for info, err := range s.List(t.Context(), "") {
				if err != nil || info.Tag == "" {
					t.Fatalf("%+v, %v", info, err)
				}
				left = append(left, info.Key)
			}
			if len(left) != 1 || left[0] != keys[0] {
				t.Errorf("%v are left", left)
			}
		})
	}
}

func TestADeletionIsOneCallForAThousand(t *testing.T) {
	f := newFaultyS3(t)
	s := f.store(t, nil)
	var calls atomic.Int64
	f.Break(func(http.ResponseWriter, *http.Request) bool { calls.Add(1); return false })
	keys := make([]string, 2500)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%d", i)
	}
	if err := s.DeleteAll(t.Context(), keys); err != nil || calls.Load() != 3 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
}

func TestAStoreWithoutTheCallDeletesOneByOne(t *testing.T) {
	f := newFaultyS3(t)
	s := f.store(t, nil)
	if err := s.Put(t.Context(), "a", strings.NewReader("x"), PutOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Break(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && r.URL.Query().Has("delete") {
			w.WriteHeader(http.StatusNotImplemented)
			return true
		}
		return false
	})
	if err := s.DeleteAll(t.Context(), []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	for info := range s.List(t.Context(), "") {
		t.Errorf("%s is left", info.Key)
	}
}
