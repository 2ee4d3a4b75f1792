import type { Usage } from '../../../core/usage.ts'
import type { BillingFields } from '../../endpoint.ts'
import type { ModelFacts } from '../../model-facts.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS } from '../../token-estimate.ts'
import { billedQuality } from './image-quality.ts'
import { billedSize } from './image-size.ts'
import type { PictureOptions } from './picture-options.ts'
import { pictureTokens } from './picture-tokens.ts'

/** Output tokens of a picture that is sent before it is finished (OpenAI, guide to image generation). */
export const PARTIAL_IMAGE_TOKENS = 100

/** What stands in a request besides its options. */
export interface PictureInput {
  readonly textTokens: number
  /** Pictures given, the mask included. */
  readonly pictures: number
}

/**
 * An upper estimate of a request's usage. A model whose abilities list no tokens is sold by the picture; one without
 * abilities may be sold in any way, so tokens are named for it too.
 */
export function pictureEstimate(options: PictureOptions, input: PictureInput, model: ModelFacts): Usage {
  const images = options.n ?? 1
  const { image } = model
  if (image !== undefined && image.outputTokens === undefined) return { images }
  const perPicture = tokensOfOne(options, model) + (options.partial_images ?? 0) * PARTIAL_IMAGE_TOKENS
  const outputTokens = images * perPicture
  const inputImageTokens = input.pictures * (image?.inputTokensPerImage ?? DEFAULT_MAX_OUTPUT_TOKENS)
  return {
    inputTokens: input.textTokens + inputImageTokens,
    inputImageTokens,
    outputTokens,
    outputImageTokens: outputTokens,
    images,
  }
}

/**
 * Size and quality for price conditions, aliases resolved. What the caller leaves out is the model's own value, which is
 * `auto` where the vendor chooses: a price list for such a model needs a row without conditions, or one for `auto`.
 */
export function pictureBillingFields(options: PictureOptions, { image }: ModelFacts): BillingFields {
  return { size: billedSize(options.size, image), quality: billedQuality(options.quality, image) }
}

function tokensOfOne(options: PictureOptions, { image, limits }: ModelFacts): number {
  if (image?.outputTokens === undefined) return limits.maxOutputTokens ?? DEFAULT_MAX_OUTPUT_TOKENS
  return pictureTokens(image.outputTokens, billedSize(options.size, image), billedQuality(options.quality, image))
}
