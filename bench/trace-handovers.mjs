/** Where a stream is handed over inside a proxy, in order. */
export const HANDOVERS = {
  requested: "the request's head is parsed",
  bodyRead: 'its body is read',
  sentToVendor: "it is written to the vendor's socket",
  answered: "the vendor's first bytes are read",
  headWritten: 'the head of the answer is written',
  bytesWritten: 'its first bytes are written',
  sentToCaller: "they are written to the caller's socket",
}
