import type { Transport } from '../transport/transport.ts'

/** State of the bytes that a vendor sends. Shared by all requests of one attempt. */
export interface VendorActivity {
  /** Whether bytes have arrived since the last check. */
  hasBytes: boolean
  /** Whether the gateway does not read, because the caller is slow. */
  isPaused: boolean
}

/** An attempt whose vendor is watched for silence. */
export interface WatchedAttempt {
  /** How its requests are sent. */
  readonly transport: Transport
  readonly activity: VendorActivity
  /**
   * Starts to watch: reports once if the vendor sends nothing, in a stream for 15 seconds, otherwise for 60.
   * @param isPatient Whether silence is usual for the model; then a stream has 60 seconds too.
   */
  watchSilence(isStream: boolean, isPatient: boolean): void
}
