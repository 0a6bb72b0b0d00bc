// Command cdischema checks files against the CDI project's published JSON schema. It is a module of
// its own because the last release of the project's Go module that has the schema in it is 0.8.1,
// while the reader that the conformance tests use is newer. No file of ours declares more than 0.7.0.
package main

import (
	"fmt"
	"os"

	"tags.cncf.io/container-device-interface/schema"
)

func main() {
	published, err := schema.Load(schema.BuiltinSchemaName)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	status := 0
	for _, file := range os.Args[1:] {
		text, err := os.ReadFile(file)
		if err == nil {
			err = published.ValidateData(text)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			status = 1
		}
	}
	os.Exit(status)
}
