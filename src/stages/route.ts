import type { Candidate, Reserved, Routed } from './records.ts'
import type { StageContext } from './stage-context.ts'

/** Lists who could answer, in the order of trying: the model asked for, then its fallbacks. */
export function route(context: StageContext, reserved: Reserved): Routed {
  const candidates: Candidate[] = []
  for (const model of reserved.chain) {
    const vendor = context.vendors.get(model.vendor)
    const apiKey = vendor?.apiKeys[0]
    if (vendor !== undefined && apiKey !== undefined) candidates.push({ model, vendor, apiKey })
  }
  return Object.assign(reserved, { candidates })
}
