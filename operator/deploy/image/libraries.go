package image

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
)

// libraryFolders are where the loader of Debian looks without a cache, in its order.
var libraryFolders = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"}

// libraries adds the shared libraries and the loader that programs need. They are below sysroot here, "" for the
// machine's own, and at the same places in the image.
func (t tree) libraries(sysroot string, of ...string) error {
	for len(of) > 0 {
		path := of[0]
		of = of[1:]
		f, err := elf.Open(path)
		if err != nil {
			return fmt.Errorf("image: %s: %w", path, err)
		}
		needs, loader, err := needed(f)
		if err := closing(f, err); err != nil {
			return fmt.Errorf("image: %s: %w", path, err)
		}
		for _, name := range needs {
			at, err := findLibrary(sysroot, name)
			if err != nil {
				return fmt.Errorf("image: %s needs %w", path, err)
			}
			of = append(of, t.library(sysroot, at)...)
		}
		if loader != "" {
			of = append(of, t.library(sysroot, loader)...)
		}
	}
	return nil
}

// library adds one library and returns where it is here if it is new.
func (t tree) library(sysroot, at string) []string {
	if _, ok := t[clean(at)]; ok {
		return nil
	}
	here := filepath.Join(sysroot, at)
	t.file(at, here, 0o755)
	return []string{here}
}

// architecture is the name that images have for the machine of a program.
func architecture(program string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", fmt.Errorf("image: %s: %w", program, err)
	}
	name, ok := map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine]
	if !ok {
		err = fmt.Errorf("image: %s is for %v, which images have no name for here", program, f.Machine)
	}
	return name, closing(f, err)
}

func needed(f *elf.File) (libraries []string, loader string, err error) {
	if libraries, err = f.ImportedLibraries(); err != nil {
		return nil, "", err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			text := make([]byte, p.Filesz)
			if _, err := p.ReadAt(text, 0); err != nil {
				return nil, "", err
			}
			loader = string(text[:max(len(text)-1, 0)]) // it ends in a zero
		}
	}
	return libraries, loader, nil
}

func findLibrary(sysroot, name string) (string, error) {
	for _, folder := range libraryFolders {
		at := filepath.Join(folder, name)
		if st, err := os.Stat(filepath.Join(sysroot, at)); err == nil && st.Mode().IsRegular() {
			return at, nil
		}
	}
	return "", fmt.Errorf("library %s, which is in none of %v below %q", name, libraryFolders, sysroot)
}

func closing(f *elf.File, err error) error {
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
