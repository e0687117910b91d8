// Package supplied is a data plane's backend for workers whose machines a provider.Supply gives and takes back. The
// first instance on a worker acquires the machine; some time after the last one is closed it is given back.
package supplied
