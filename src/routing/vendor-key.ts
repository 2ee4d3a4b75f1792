import { createHash } from 'node:crypto'
import { type CircuitState, CLOSED } from './circuit-breaker.ts'
import { LatencyAverage } from './latency-average.ts'

/** One of the operator's keys at a vendor, with its circuit and load. Lives as long as the gateway. */
export class VendorKey {
  readonly vendorId: string
  readonly apiKey: string
  /** Its name in events and reports, which does not tell the key. */
  readonly credentialId: string
  /** Share of the vendor's calls. */
  readonly weight: number
  /** Of whole answers and of first contents of streams alike; for reports. */
  readonly latency = new LatencyAverage()
  circuit: CircuitState = CLOSED
  /** Calls under way. */
  inFlight = 0

  constructor(vendorId: string, apiKey: string, weight: number) {
    this.vendorId = vendorId
    this.apiKey = apiKey
    this.credentialId = credentialIdOf(vendorId, apiKey)
    this.weight = weight
  }
}

/** Names one of the operator's keys at a vendor without telling the key: the vendor's id and 16 hexadecimal digits. */
function credentialIdOf(vendorId: string, apiKey: string): string {
  return `${vendorId}:${createHash('sha256').update(apiKey).digest('hex').slice(0, 16)}`
}
