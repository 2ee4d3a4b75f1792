import type { Clock, Timer } from '../core/clock.ts'
import { TransientMap } from '../core/maps.ts'
import type { Transport } from '../transport/transport.ts'

/** Time between two checks of all calls for bytes of their vendors, in milliseconds. */
const CHECK_INTERVAL_MS = 5_000

/** Time without a byte after which a stream is reported, in milliseconds. */
const SILENT_STREAM_MS = 15_000

/** Time without a byte after which other calls are reported, in milliseconds. */
const SILENT_ANSWER_MS = 60_000

/** State of the bytes that a vendor sends. Shared by all requests of one attempt. */
export interface VendorActivity {
  /** Whether bytes have arrived since the last check. */
  hasBytes: boolean
  /** Whether the gateway does not read, because the caller is slow. */
  isPaused: boolean
}

/** An attempt whose vendor is watched for silence. */
export interface WatchedAttempt extends VendorActivity {
  /** Transport of its requests. */
  readonly transport: Transport
  /** Starts watching: reports once if the vendor sends nothing for this time, in milliseconds. */
  watchSilence(silentMs: number): void
}

/** A call that {@link SilenceWatch} checks. */
export interface WatchedCall {
  /** Checks for bytes of the vendor. Returns whether to continue watching. */
  checkSilence(nowMs: number): boolean
}

/**
 * Returns the duration of silence that is reported, in milliseconds.
 * @param isPatient Whether silence is usual for the model.
 */
export function reportedSilenceMs(isStream: boolean, isPatient: boolean): number {
  return isStream && !isPatient ? SILENT_STREAM_MS : SILENT_ANSWER_MS
}

/** Checks calls for silent vendors. One timer serves all calls, so a report may come up to 5 seconds late. */
export class SilenceWatch {
  readonly #clock: Clock
  readonly #calls = new TransientMap<WatchedCall, true>()
  #timer: Timer | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(call: WatchedCall): void {
    this.#calls.set(call, true)
    this.#timer ??= this.#nextCheck()
  }

  delete(call: WatchedCall): void {
    this.#calls.delete(call)
  }

  #nextCheck(): Timer {
    return this.#clock.schedule(CHECK_INTERVAL_MS, () => {
      const nowMs = this.#clock.now()
      for (const call of this.#calls.keys()) if (!call.checkSilence(nowMs)) this.#calls.delete(call)
      this.#timer = this.#calls.size === 0 ? undefined : this.#nextCheck()
    })
  }
}
