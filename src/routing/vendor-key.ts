import { HEALTHY, type Health } from './health.ts'
import { LatencyAverage } from './latency-average.ts'
import { vendorAccount } from './vendor-account.ts'

/** One of the operator's keys at a vendor, and how it does. Lives as long as the gateway. */
export class VendorKey {
  readonly vendorId: string
  readonly apiKey: string
  /** Its name in events and reports, which does not tell the key. */
  readonly account: string
  /** Share of the vendor's calls. */
  readonly weight: number
  /** Of whole answers and of first contents of streams alike; for reports. */
  readonly latency = new LatencyAverage()
  health: Health = HEALTHY
  /** Calls under way. */
  inFlight = 0

  constructor(vendorId: string, apiKey: string, weight: number) {
    this.vendorId = vendorId
    this.apiKey = apiKey
    this.account = vendorAccount(vendorId, apiKey)
    this.weight = weight
  }
}
