import * as z from 'zod'
import { onDemand } from '../../../core/on-demand.ts'
import { hasAtMost } from '../../character-count.ts'
import { listOf } from '../../list-of.ts'

/** Longest `negative_prompt`, in characters (code points), as the vendor counts. */
const MAX_NEGATIVE_PROMPT = 500

const LARGEST_SEED = 2 ** 31 - 1

const httpsUrl = onDemand(() =>
  z
    .string()
    .refine(
      (text) => /^https:\/\//i.test(text) && URL.canParse(text),
      'must be an https URL, which the vendor downloads',
    ),
)

const block = onDemand(() =>
  z
    .looseObject({ text: z.string().min(1).optional(), image: httpsUrl().optional() })
    .refine(
      ({ text, image }) => (text === undefined) !== (image === undefined),
      'must hold either text or image, not both',
    ),
)

/** Maximum number of blocks of a message. Current models accept one text and a few images. */
const MAX_BLOCKS = 64

const message = onDemand(() =>
  z.looseObject({
    role: z.literal('user'),
    content: listOf(block(), MAX_BLOCKS).refine(
      (blocks) => blocks.some(({ text }) => text !== undefined),
      'must hold at least one text block',
    ),
  }),
)

const negativePrompt = onDemand(() =>
  z
    .string()
    .refine((text) => hasAtMost(text, MAX_NEGATIVE_PROMPT), `must have at most ${MAX_NEGATIVE_PROMPT} characters`),
)

/**
 * Rules of the multimodal image request (API specification, "Multimodal image request") that hold for every model. Unknown fields
 * are passed on. So are several texts: the vendor rejects them with its own text.
 */
export const multimodalImageSchema = onDemand(() =>
  z.looseObject({
    model: z.string().min(1),
    input: z.looseObject({ messages: listOf(message()).length(1, 'must hold exactly one message') }),
    parameters: z
      .looseObject({
        size: z
          .string()
          .regex(/^[1-9]\d{0,4}\*[1-9]\d{0,4}$/, 'must be width and height joined by *, such as 1024*1024')
          .optional(),
        n: z.literal(1, 'must be exactly 1').optional(),
        seed: z.int().min(0).max(LARGEST_SEED).optional(),
        watermark: z.boolean().optional(),
        negative_prompt: negativePrompt().optional(),
        prompt_extend: z.boolean().optional(),
      })
      .optional(),
  }),
)
