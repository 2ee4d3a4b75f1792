import { createHash } from 'node:crypto'
import { type CircuitState, CLOSED } from './circuit-breaker.ts'
import { LatencyAverage } from './latency-average.ts'

/** One of the operator's keys at a vendor, with its circuit and load. Lives as long as the gateway. */
export class VendorKey {
  readonly vendorId: string
  readonly apiKey: string
  /** Credential id: its name in events and reports, which does not reveal the key. */
  readonly credentialId: string
  /** Share of the vendor's calls. */
  readonly weight: number
  /** For JSON responses and first contents of streams alike; for reports. */
  readonly latency = new LatencyAverage()
  circuit: CircuitState = CLOSED
  /** Calls in progress. */
  inFlight = 0

  constructor(vendorId: string, apiKey: string, weight: number) {
    this.vendorId = vendorId
    this.apiKey = apiKey
    this.credentialId = credentialIdOf(vendorId, apiKey)
    this.weight = weight
  }
}

/** The credential id of one of the operator's keys: the vendor's id and 16 hexadecimal digits. Does not reveal the key. */
function credentialIdOf(vendorId: string, apiKey: string): string {
  return `${vendorId}:${createHash('sha256').update(apiKey).digest('hex').slice(0, 16)}`
}
