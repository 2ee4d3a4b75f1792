import { isJsonObject } from '../core/json.ts'
import { unsupportedField } from './field-errors.ts'

/** A field of chat and Responses: the vendor moderates input and output itself (OpenAI API, `moderation`). */
export const INLINE_MODERATION = 'moderation'

/**
 * Called before the field is dropped for a vendor that does not moderate. Missing scores are reported like any dropped field, but a
 * caller that requested blocking must not get an answer without it. An unknown mode may block too.
 * @throws GatewayError `unsupported_parameter` naming the mode.
 */
export function refuseLostBlocking(moderation: unknown): void {
  const policy = isJsonObject(moderation) ? moderation['policy'] : undefined
  if (!isJsonObject(policy)) return
  for (const side of ['input', 'output']) {
    const rule = policy[side]
    const mode = isJsonObject(rule) ? rule['mode'] : undefined
    if (mode === undefined || mode === null || mode === 'score') continue
    throw unsupportedField(`${INLINE_MODERATION}.policy.${side}.mode`, 'the vendor of this model does not block')
  }
}
