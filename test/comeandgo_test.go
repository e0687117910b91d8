package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/longtest"
)

// Models that are loaded, asked and unloaded one after the other leave nothing in the server's tables, and each answers
// for itself: none is taken for another that had its place before.
func TestLoadsAndUnloadsLeaveNothing(t *testing.T) {
	needsONNX(t)
	dir := t.TempDir()
	models := longtest.Of(6, 40)
	for k := range models {
		adding(t, dir, fmt.Sprintf("m%d", k), 1, float32(k))
	}
	adding(t, dir, "stays", 1, 1000)
	server := controlled(t, dir, "--model-control-mode", "explicit", "--load-model", "stays", "--admin", "127.0.0.1:0")
	base, admin := server.url(), server.admin
	for k := range longtest.Of(18, 1000) {
		model, number := fmt.Sprintf("m%d", k%models), k%models
		if k%5 == 4 { // another version of it
			number += 100
			adding(t, dir, model, k+2, float32(number))
		}
		controls(t, base, model, "load", "{}")
		if got := added(t, base, model); got != fmt.Sprint(number+1) {
			t.Errorf("load %d: %s answers %s, want %d", k, model, got, number+1)
		}
		if got := added(t, base, "stays"); got != "1001" {
			t.Errorf("load %d: the model that stays answers %s", k, got)
		}
		controls(t, base, model, "unload", "{}")
		if got := added(t, base, model); !strings.HasPrefix(got, "503") || !strings.Contains(got, model) {
			t.Errorf("load %d: %s is unloaded, and answers %s", k, model, got)
		}
		if number >= 100 {
			adding(t, dir, model, k+3, float32(k%models))
		}
	}
	var machines struct {
		Stages   []struct{ App, Stage string } `json:"stages"`
		Variants []string                      `json:"variants"`
	}
	code, body := bodyOf(t, "http://"+admin+"/api/v1/machines")
	if err := json.Unmarshal([]byte(body), &machines); code != 200 || err != nil {
		t.Fatalf("machines: %d %v", code, err)
	}
	// One that is going when the next comes keeps its place.
	if len(machines.Stages) > 4 || len(machines.Variants) > 4 {
		t.Errorf("stages %v and variants %v, want the one that stays and places for two others", machines.Stages,
			machines.Variants)
	}
	for k := range models {
		code, body := bodyOf(t, fmt.Sprintf("%s/v2/models/m%d/stats", base, k))
		if code != 200 || strings.Contains(body, "inference_count") {
			t.Errorf("statistics of an unloaded model: %d %s", code, body)
		}
	}
}
