import type { ModelUsage, UsageCounts } from '../../core/usage.ts'
import type { InnerModel } from '../endpoint.ts'
import { declared } from './responses-surcharges.ts'

/** Type of the tool that runs a vendor's image model within a response. */
export const IMAGE_TOOL = 'image_generation'

/** Image model of a tool that names none (OpenAI API reference, "Create a model response", `tools`, November 2026). */
const DEFAULT_IMAGE_MODEL = 'gpt-image-2.6-sunburst'

/** Number of images that the hold covers without `max_tool_calls`. */
const ASSUMED_IMAGES = 2

/** Output tokens of an image of high quality in the largest standard size (OpenAI, "Image generation", table of tokens). */
const TOKENS_PER_IMAGE = 6_240

/** Returns the image models that may work within a response, each at its own price. */
export function imageToolModels(request: Readonly<Record<string, unknown>>): readonly InnerModel[] {
  return declared(request)
    .filter(({ type }) => type === IMAGE_TOOL)
    .map(({ model, param }) => ({ model: typeof model === 'string' ? model : DEFAULT_IMAGE_MODEL, param }))
}

/** Returns the maximum usage of image models, which read the conversation and write `max_tool_calls` images (default 2). */
export function imageToolEstimate(
  request: Readonly<Record<string, unknown>>,
  inputTokens: number,
): readonly ModelUsage[] {
  const { max_tool_calls: bound } = request
  const images = typeof bound === 'number' ? Math.max(bound, 0) : ASSUMED_IMAGES
  return imageToolModels(request).map(({ model }) => ({ model, usage: imageToolCounts(images, inputTokens) }))
}

/** Returns the most that an image model uses for images that each read `inputTokens`. */
export function imageToolCounts(images: number, inputTokens: number): UsageCounts {
  const outputTokens = images * TOKENS_PER_IMAGE
  return { inputTokens: images * inputTokens, outputTokens, outputImageTokens: outputTokens, images }
}
