import { createHash } from 'node:crypto'
import { type CircuitState, CLOSED } from './circuit-breaker.ts'
import type { CredentialCache } from './credential-cache.ts'
import { LatencyAverage } from './latency-average.ts'

/** Key of the operator at a vendor, with its circuit and load. Lives as long as the gateway. */
export class VendorKey {
  readonly vendorId: string
  /** The key; empty if `credentials` provides it. */
  readonly apiKey: string
  /** Cache of expiring credentials, or `undefined` for a fixed key that translators write. */
  readonly credentials: CredentialCache | undefined
  /** Credential id: name of the key in events and reports, which does not reveal it. */
  readonly credentialId: string
  /** Share of the vendor's calls. */
  readonly weight: number
  /** Average for reports over JSON responses and first contents of streams. */
  readonly latency = new LatencyAverage()
  circuit: CircuitState = CLOSED
  /** Calls in progress. */
  inFlight = 0

  /** @param provided Cache of credentials that replaces the key, and the source of its credential id. */
  constructor(vendorId: string, apiKey: string, weight: number, provided?: ProvidedCredentials) {
    this.vendorId = vendorId
    this.apiKey = apiKey
    this.credentials = provided?.cache
    this.credentialId = credentialIdOf(vendorId, provided?.slot ?? apiKey)
    this.weight = weight
  }
}

/** Credentials of a slot whose tokens expire. */
export interface ProvidedCredentials {
  readonly slot: string
  readonly cache: CredentialCache
}

/** Returns the credential id of one of the operator's keys: the vendor's id and 16 hexadecimal digits. Does not reveal the key. */
export function credentialIdOf(vendorId: string, keyOrSlot: string): string {
  return `${vendorId}:${createHash('sha256').update(keyOrSlot).digest('hex').slice(0, 16)}`
}
