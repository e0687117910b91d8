package oip

// OwnerHeader is the metadata in which whoever has nodes of sluice load and unload models says which run it is. A node
// unloads a model only when no other run needs it any more.
const OwnerHeader = "sluice-owner"
