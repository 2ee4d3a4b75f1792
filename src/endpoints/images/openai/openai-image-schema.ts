import * as z from 'zod'
import { onDemand } from '../../../core/on-demand.ts'
import { hasAtMost } from '../../character-count.ts'

/** Longest prompt, in characters (OpenAI API reference, images). */
const MAX_PROMPT_CHARACTERS = 32_000

/** Maximum images per request (API specification, "Limits"). */
const MAX_PICTURES = 10

const prompt = onDemand(() =>
  z
    .string()
    .min(1)
    .refine((text) => hasAtMost(text, MAX_PROMPT_CHARACTERS), `at most ${MAX_PROMPT_CHARACTERS} characters`),
)

/** Rules of both requests that hold for every model. Unknown fields are passed on. */
export const pictureSchema = onDemand(() =>
  z.looseObject({
    model: z.string().min(1),
    prompt: prompt(),
    n: z.int().min(1).max(MAX_PICTURES).nullish(),
    size: z.string().nullish(),
    quality: z.string().nullish(),
    response_format: z.enum(['url', 'b64_json']).nullish(),
    output_format: z.string().nullish(),
    output_compression: z.int().min(0).max(100).nullish(),
    background: z.enum(['transparent', 'opaque', 'auto']).nullish(),
    moderation: z.enum(['auto', 'low']).nullish(),
    stream: z.boolean().nullish(),
    partial_images: z.int().min(0).max(3).nullish(),
    user: z.string().nullish(),
  }),
)
