//go:build cgo && linux

package onnx

/*
#define _GNU_SOURCE
#include <locale.h>
#include <stdlib.h>

// has_locale finds a locale by its name. One that is found stays in memory.
static int has_locale(const char *name) { return newlocale(LC_ALL_MASK, name, (locale_t)0) != (locale_t)0; }

static void find_locales_in(const char *folder) { setenv("LOCPATH", folder, 1); }
*/
import "C"

import (
	"os"
	"path/filepath"
	"unsafe"
)

const (
	// askedLocale is what the runtime asks of the C library for models that normalise text.
	askedLocale = "en_US.UTF-8"
	// plainLocale is in every Debian, and changes between large and small letters as the other does.
	plainLocale = "/usr/lib/locale/C.utf8"
	// madeLocales has those that were made for this machine. With LOCPATH they would not be found.
	madeLocales = "/usr/lib/locale/locale-archive"
)

// standInForLocale has the plain locale stand in for the one that the runtime asks for, where the machine has neither
// that nor any of its own: without it, such models do not load. Only this process finds it, not those that it starts.
func standInForLocale() {
	name := C.CString(askedLocale)
	defer C.free(unsafe.Pointer(name))
	if os.Getenv("LOCPATH") != "" || C.has_locale(name) != 0 || exists(madeLocales) || !exists(plainLocale) {
		return
	}
	folder, err := os.MkdirTemp("", "sluice-locale-")
	if err != nil {
		return
	}
	defer func() { _ = os.RemoveAll(folder) }() // what was found is in memory
	if os.Symlink(plainLocale, filepath.Join(folder, askedLocale)) != nil {
		return
	}
	at := C.CString(folder)
	defer C.free(unsafe.Pointer(at))
	C.find_locales_in(at)
	C.has_locale(name)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
