// Package fetch puts models where workers find them: from files, volumes, web servers, object stores and registries. A
// model is visible once all of it is there and its digest is right. Sizes and times are bounded, and no archive writes
// outside of its model's folder.
package fetch
