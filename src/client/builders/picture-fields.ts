import { GatewayError } from '../../core/errors.ts'
import { checkQuality } from '../../endpoints/images/openai/openai-image-request.ts'
import type { ImageAbilities } from '../../endpoints/model-facts.ts'
import { builderFault, within } from './draft.ts'

/** API specification, "Limits". */
const MAX_PICTURES = 10

/** OpenAI API, "Create image". */
const MAX_PARTIAL_IMAGES = 3

/** Fields by which both new and edited pictures of OpenAI's shape are described. */
export interface PictureFields {
  readonly prompt?: string
  readonly n?: number
  readonly size?: string
  readonly quality?: string
  readonly output_format?: string
  readonly output_compression?: number
  readonly background?: string
  readonly response_format?: string
  readonly moderation?: string
  readonly user?: string
  readonly stream?: true
  readonly partial_images?: number
}

/**
 * Checks fields that depend on the model or on one another, as the gateway does (API specification, "Image edit request").
 * Sizes are checked apart.
 * @throws GatewayError `invalid_request` or `unsupported_parameter` naming the field.
 */
export function checkPictureFields(fields: PictureFields, abilities: ImageAbilities | undefined): void {
  for (const field of abilities?.refusedFields ?? []) {
    if (!Object.hasOwn(fields, field)) continue
    throw new GatewayError('unsupported_parameter', { message: `${field}: this model does not take it`, param: field })
  }
  if (fields.n !== undefined) within('n', fields.n, [1, abilities?.maxImages ?? MAX_PICTURES])
  if (fields.partial_images !== undefined) within('partial_images', fields.partial_images, [0, MAX_PARTIAL_IMAGES])
  checkQuality(fields.quality, abilities)
  const format = fields.output_format ?? 'png'
  if (fields.background === 'transparent' && format === 'jpeg') {
    throw builderFault('background', 'transparent needs output_format png or webp')
  }
  if (fields.output_compression !== undefined) {
    if (format === 'png') throw builderFault('output_compression', 'needs output_format jpeg or webp')
    within('output_compression', fields.output_compression, [0, 100])
  }
}
