package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// differing lists where two JSON documents differ: one line for each value or entry of a list that
// only the first has (-) or only the second (+), or that both have in another order.
func differing(first, second []byte) []string {
	var a, b any
	if err := json.Unmarshal(first, &a); err != nil {
		return []string{err.Error()}
	}
	if err := json.Unmarshal(second, &b); err != nil {
		return []string{err.Error()}
	}
	const most = 40
	lines := differingAt("", a, b)
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	return lines
}

func differingAt(at string, a, b any) []string {
	if reflect.DeepEqual(a, b) {
		return nil
	}
	objectA, isObjectA := a.(map[string]any)
	objectB, isObjectB := b.(map[string]any)
	listA, isListA := a.([]any)
	listB, isListB := b.([]any)
	if isListA && isListB {
		// Entries are told apart by what they are, not by their places.
		objectA, objectB = labelled(listA), labelled(listB)
	} else if !isObjectA || !isObjectB {
		return []string{oneSided(at, a, "-"), oneSided(at, b, "+")}
	}
	var lines []string
	keys := maps.Clone(objectA)
	maps.Copy(keys, objectB)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		inner := at + "/" + key
		valueA, hasA := objectA[key]
		valueB, hasB := objectB[key]
		switch {
		case !hasA:
			lines = append(lines, oneSided(inner, valueB, "+"))
		case !hasB:
			lines = append(lines, oneSided(inner, valueA, "-"))
		default:
			lines = append(lines, differingAt(inner, valueA, valueB)...)
		}
	}
	if len(lines) == 0 {
		return []string{at + ": the same entries, but in another order or number",
			oneSided(at, a, "-"), oneSided(at, b, "+")}
	}
	return lines
}

func oneSided(at string, value any, side string) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %s %s", side, at, text)
}

func labelled(list []any) map[string]any {
	entries := map[string]any{}
	for _, entry := range list {
		label := fmt.Sprint(entry)
		if object, ok := entry.(map[string]any); ok {
			// Of a device, a mount, a node; hooks have none of these in common with another.
			for _, key := range []string{"name", "containerPath", "path"} {
				if text, ok := object[key].(string); ok && object["hookName"] == nil {
					label = text
					break
				}
			}
		}
		entries[label] = entry
	}
	return entries
}
