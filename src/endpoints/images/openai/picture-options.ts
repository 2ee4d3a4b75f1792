import { z } from 'zod'
import { GatewayError } from '../../../core/errors.ts'
import type { ImageAbilities } from '../../model-facts.ts'
import { checkQuality } from './image-quality.ts'

/** Longest prompt, in characters (OpenAI API reference, images). */
export const MAX_PROMPT_CHARACTERS = 32_000

/** Most pictures of one request (API specification, "Limits"). */
export const MAX_PICTURES = 10

/** The fields by which both text to image and edits say what they want. */
export interface PictureOptions {
  readonly n?: number | null
  readonly size?: string | null
  readonly quality?: string | null
  readonly response_format?: string | null
  readonly output_format?: string | null
  readonly output_compression?: number | null
  readonly background?: string | null
  readonly partial_images?: number | null
}

const prompt = z.string().min(1).refine(isShort, `at most ${MAX_PROMPT_CHARACTERS} characters`)

/** Rules of those fields that hold for every model; unknown fields pass. */
export const pictureSchema = z.looseObject({
  model: z.string().min(1),
  prompt,
  n: z.int().min(1).max(MAX_PICTURES).nullish(),
  size: z.string().nullish(),
  quality: z.string().nullish(),
  response_format: z.enum(['url', 'b64_json']).nullish(),
  output_format: z.enum(['png', 'jpeg', 'webp']).nullish(),
  output_compression: z.int().min(0).max(100).nullish(),
  background: z.enum(['transparent', 'opaque', 'auto']).nullish(),
  moderation: z.enum(['auto', 'low']).nullish(),
  stream: z.boolean().nullish(),
  partial_images: z.int().min(0).max(3).nullish(),
  user: z.string().nullish(),
})

/**
 * Checks what depends on the model, and fields that depend on one another. Sizes are checked apart, because text to image
 * and edits have different rules for them.
 * @throws GatewayError `invalid_request` or `unsupported_parameter` naming the field.
 */
export function checkPictureOptions(options: PictureOptions, abilities: ImageAbilities | undefined): void {
  const values = options as Readonly<Record<string, unknown>>
  for (const field of abilities?.refusedFields ?? []) {
    const value = values[field]
    if (value === undefined || value === null || value === false) continue
    throw new GatewayError('unsupported_parameter', { message: `${field}: this model does not take it`, param: field })
  }
  const maxImages = abilities?.maxImages ?? MAX_PICTURES
  if ((options.n ?? 1) > maxImages) throw invalid('n', `this model makes at most ${maxImages} pictures at once`)
  checkQuality(options.quality, abilities)
  const format = options.output_format ?? 'png'
  if (options.background === 'transparent' && format === 'jpeg') {
    throw invalid('background', 'transparent needs output_format png or webp')
  }
  if (options.output_compression !== undefined && options.output_compression !== null && format === 'png') {
    throw invalid('output_compression', 'needs output_format jpeg or webp')
  }
}

function isShort(text: string): boolean {
  if (text.length <= MAX_PROMPT_CHARACTERS) return true
  // A character takes at most two units, so what is longer need not be counted.
  return text.length <= 2 * MAX_PROMPT_CHARACTERS && [...text].length <= MAX_PROMPT_CHARACTERS
}

function invalid(param: string, text: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${text}`, param })
}
