import * as z from 'zod'
import { onDemand } from '../../core/on-demand.ts'
import { listOf } from '../list-of.ts'

/** A text, or an image as an address or a `data:` URL. */
export type ModerationPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }

/** A request for moderation (OpenAI API, "Create moderation"). */
export interface ModerationRequest {
  /** Model id. Defaults to `omni-moderation-latest`. */
  model: string
  /** One text, several texts with a result each, or parts that are judged together. */
  input: string | string[] | ModerationPart[]
  [field: string]: unknown
}

/** Maximum texts or parts per request. Callers split longer lists themselves. */
export const MAX_MODERATION_INPUTS = 2_048

const part = onDemand(() =>
  z.union([
    z.looseObject({ type: z.literal('text'), text: z.string() }),
    z.looseObject({ type: z.literal('image_url'), image_url: z.looseObject({ url: z.string().min(1) }) }),
  ]),
)

/** Rules of the request. Unknown fields are passed on. */
export const moderationSchema = onDemand(() =>
  z.looseObject({
    model: z.string().min(1).optional(),
    input: z.union([
      z.string(),
      listOf(z.string(), MAX_MODERATION_INPUTS).min(1),
      listOf(part(), MAX_MODERATION_INPUTS).min(1),
    ]),
  }),
)

/** Returns the parts of an input, or `undefined` if the input is text. */
export function partsOf({ input }: Pick<ModerationRequest, 'input'>): readonly ModerationPart[] | undefined {
  return Array.isArray(input) && typeof input[0] === 'object' ? (input as ModerationPart[]) : undefined
}
