import { isJsonObject } from '../../core/json.ts'
import { invalidField } from '../field-errors.ts'

/** How the models of each shape take what is to be drawn. */
const PROMPTS = {
  multimodal: {
    own: 'input',
    other: 'prompt',
    hint: 'write it as input: { "messages": [{ "role": "user", "content": [{ "text": "…" }] }] }',
  },
  interactions: { own: 'input', other: 'prompt', hint: 'write it as input' },
  generations: { own: 'prompt', other: 'input', hint: 'write it as prompt' },
} as const

/**
 * Tells a caller who wrote the shape of another model how this one is asked.
 * @throws GatewayError `invalid_request` naming the member of the other shape.
 */
export function refuseOtherShape(body: unknown, shape: keyof typeof PROMPTS): void {
  const { own, other, hint } = PROMPTS[shape]
  if (!isJsonObject(body) || body[own] !== undefined || body[other] === undefined) return
  throw invalidField(other, `is of another model's request; ${hint}`)
}
