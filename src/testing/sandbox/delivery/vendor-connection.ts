import type { IncomingCall } from '../sandbox-call.ts'

/** The vendor's side of one connection, over a socket or in process. */
export interface VendorConnection {
  /** True once the caller is gone or the answer has ended; everything is then ignored. */
  readonly closed: boolean
  /** Sends status and headers (a flat list: name, value, name, value). */
  head(status: number, headers: readonly string[]): void
  /** Sends bytes. False means: stop until `onDrain`. */
  write(bytes: Uint8Array): boolean
  /** Ends the answer cleanly. */
  end(): void
  /** Breaks the connection, after the bytes written so far have left. */
  reset(): void
  /** Breaks the connection as if it had never come about, where that can be shown. */
  refuse(): void
  /** Calls back when writing may go on after `write` returned false. One listener. */
  onDrain(listener: () => void): void
  /** Calls back once when the caller leaves before the answer has ended. One listener. */
  onLeave(listener: () => void): void
}

/** Takes over a call that has arrived in full. */
export type CallReceiver = (call: IncomingCall, connection: VendorConnection) => void
