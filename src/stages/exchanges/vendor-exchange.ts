import type { AnswerStream, RelayedBody, Vendor, VendorCall, WireAnswer, WireRequest } from '../../vendors/vendor.ts'

/** One endpoint's call as it is carried out at one vendor: what to send, and how to read what comes back. */
export interface VendorExchange {
  /** More than one only where a batch had to be split. Sent a few at once; for a stream, one after another. */
  readonly requests: readonly WireRequest[]
  /** Makes the caller's body of the vendor's 2xx answers, in the order of `requests`. Undefined: they cannot be used. */
  whole(answers: readonly ChunkedAnswer[]): RelayedBody | undefined
  /** Reads a streamed answer; only for calls that stream. */
  stream(): AnswerStream
}

/** A vendor's whole answer in the pieces in which it arrived. */
export interface ChunkedAnswer extends Omit<WireAnswer, 'body'> {
  readonly chunks: readonly Uint8Array[]
}

/** Prepares a call at a vendor. Undefined when the vendor does not do this. */
export type MakeExchange = (vendor: Vendor, call: VendorCall<never>) => VendorExchange | undefined
