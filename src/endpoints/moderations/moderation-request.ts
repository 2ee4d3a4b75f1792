import * as z from 'zod'
import { onDemand } from '../../core/on-demand.ts'
import { listOf } from '../list-of.ts'

/** A text, or a picture by its address or as a `data:` URL. */
export type ModerationPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }

/** A request for moderation (OpenAI API, "Create moderation"). */
export interface ModerationRequest {
  /** `omni-moderation-latest` when the caller names none. */
  model: string
  /** One text, several texts with a result each, or parts that are judged together. */
  input: string | string[] | ModerationPart[]
  [field: string]: unknown
}

/** Most texts or parts of one request; longer lists are for the caller to cut. */
export const MAX_MODERATION_INPUTS = 2_048

const part = onDemand(() =>
  z.union([
    z.looseObject({ type: z.literal('text'), text: z.string() }),
    z.looseObject({ type: z.literal('image_url'), image_url: z.looseObject({ url: z.string().min(1) }) }),
  ]),
)

/** Rules of the request; unknown fields pass. */
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

/** The parts of an input; undefined for texts. */
export function partsOf({ input }: Pick<ModerationRequest, 'input'>): readonly ModerationPart[] | undefined {
  return Array.isArray(input) && typeof input[0] === 'object' ? (input as ModerationPart[]) : undefined
}
