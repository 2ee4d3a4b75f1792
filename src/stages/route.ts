import { GatewayError } from '../core/errors.ts'
import { canContinue } from './conversation.ts'
import type { Candidate, Reserved, Routed } from './records.ts'
import type { StageContext } from './stage-context.ts'

/**
 * Lists who could answer, in the order of trying: the model asked for, then its fallbacks. A conversation goes on only where
 * it began.
 * @throws GatewayError `interaction_not_found` when the key that began a conversation is no longer configured.
 */
export function route(context: StageContext, reserved: Reserved): Routed {
  const candidates: Candidate[] = []
  for (const model of reserved.chain) {
    const vendor = context.vendors.get(model.vendor)
    if (vendor === undefined) continue
    const apiKey =
      reserved.conversation === undefined
        ? vendor.apiKeys[0]
        : vendor.apiKeys.find((key) => canContinue(reserved, { model, vendor, apiKey: key }))
    if (apiKey !== undefined) candidates.push({ model, vendor, apiKey })
  }
  if (candidates.length === 0) throw new GatewayError('interaction_not_found', { param: 'previous_interaction_id' })
  return Object.assign(reserved, { candidates })
}
