import { createHash } from 'node:crypto'
import { type CircuitState, CLOSED } from './circuit-breaker.ts'
import type { CredentialCache } from './credential-cache.ts'
import { LatencyAverage } from './latency-average.ts'

/** One of the operator's keys at a vendor, with its circuit and load. Lives as long as the gateway. */
export class VendorKey {
  readonly vendorId: string
  /** Empty where `credentials` gives what is sent. */
  readonly apiKey: string
  /** Undefined: the key is a text, which translators write. */
  readonly credentials: CredentialCache | undefined
  /** Credential id: its name in events and reports, which does not reveal the key. */
  readonly credentialId: string
  /** Share of the vendor's calls. */
  readonly weight: number
  /** For JSON responses and first contents of streams alike; for reports. */
  readonly latency = new LatencyAverage()
  circuit: CircuitState = CLOSED
  /** Calls in progress. */
  inFlight = 0

  /** @param provided A cache of credentials in place of the key, and what its credential id is made of. */
  constructor(vendorId: string, apiKey: string, weight: number, provided?: ProvidedCredentials) {
    this.vendorId = vendorId
    this.apiKey = apiKey
    this.credentials = provided?.cache
    this.credentialId = credentialIdOf(vendorId, provided?.slot ?? apiKey)
    this.weight = weight
  }
}

/** The credentials of a slot whose tokens expire. */
export interface ProvidedCredentials {
  readonly slot: string
  readonly cache: CredentialCache
}

/** The credential id of one of the operator's keys: the vendor's id and 16 hexadecimal digits. Does not reveal the key. */
export function credentialIdOf(vendorId: string, keyOrSlot: string): string {
  return `${vendorId}:${createHash('sha256').update(keyOrSlot).digest('hex').slice(0, 16)}`
}
