// Package process supplies machines that are processes on this computer, for laptops and tests. They end with the
// process that started them, also where that is killed.
package process
