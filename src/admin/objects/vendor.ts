import * as z from 'zod'
import type { KeyReport, VendorReport } from '../../gateway/route-report.ts'
import { timeMs } from './fields.ts'

const vendorKeySchema = z.strictObject({
  /** Id of the vendor and a fingerprint of the operator's key. */
  credential: z.string(),
  weight: z.number(),
  circuit: z.enum(['closed', 'half-open', 'open']),
  reason: z.enum(['failing', 'busy', 'refused', 'operator']).nullable(),
  open_until_ms: timeMs.nullable(),
  failures: z.int(),
  in_flight: z.int(),
  latency_ms: z.number().nullable(),
  open_models: z.array(z.string()),
})

/** Vendor from the view of this process. */
export const vendorSchema = z.strictObject({
  object: z.literal('vendor'),
  id: z.string(),
  origin: z.string(),
  in_flight: z.int(),
  limit: z.number(),
  keys: z.array(vendorKeySchema),
})

export function vendorObject({ vendor, origin, inFlight, limit, keys }: VendorReport): z.infer<typeof vendorSchema> {
  return { object: 'vendor', id: vendor, origin, in_flight: inFlight, limit, keys: keys.map(vendorKeyObject) }
}

function vendorKeyObject(key: KeyReport): z.infer<typeof vendorKeySchema> {
  return {
    credential: key.credentialId,
    weight: key.weight,
    circuit: key.circuit,
    reason: key.reason,
    open_until_ms: key.openUntilMs === null ? null : Math.floor(key.openUntilMs),
    failures: key.failures,
    in_flight: key.inFlight,
    latency_ms: key.latencyMs,
    open_models: [...key.openModels],
  }
}
