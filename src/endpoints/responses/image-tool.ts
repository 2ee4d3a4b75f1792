import { imageFamilyOf } from '../../catalog/models/image-families.ts'
import type { ModelUsage, UsageCounts } from '../../core/usage.ts'
import type { InnerModel } from '../endpoint.ts'
import { unsupportedField } from '../field-errors.ts'
import { PARTIAL_IMAGE_TOKENS, tokensPerPicture } from '../images/openai/openai-image-request.ts'
import { declared } from './responses-surcharges.ts'

/** Type of the tool that runs a vendor's image model within a response. */
export const IMAGE_TOOL = 'image_generation'

/** Image model of a tool that names none (OpenAI API reference, "Create a model response", `tools`, November 2026). */
const DEFAULT_IMAGE_MODEL = 'gpt-image-2.6-sunburst'

/** Number of images that the hold covers without `max_tool_calls`. */
const ASSUMED_IMAGES = 2

/** Image model of a tool, with the options of its images as the caller wrote them. */
interface ImageTool extends InnerModel {
  readonly size: unknown
  readonly quality: unknown
  readonly partialImages: unknown
}

/** Returns the image tools of a request. All of them name one model, or the request was rejected or is not billed. */
function imageTools(request: Readonly<Record<string, unknown>>): readonly ImageTool[] {
  return declared(request)
    .filter(({ type }) => type === IMAGE_TOOL)
    .map(({ tool, param }) => {
      const model = typeof tool['model'] === 'string' ? tool['model'] : DEFAULT_IMAGE_MODEL
      return { model, param, size: tool['size'], quality: tool['quality'], partialImages: tool['partial_images'] }
    })
}

/**
 * Returns the image model that may work within a response at its own price, if any.
 * @throws GatewayError `unsupported_parameter` for tools of several image models, because the vendor's report names none of them.
 */
export function imageToolModels(request: Readonly<Record<string, unknown>>): readonly InnerModel[] {
  const [first, ...others] = imageTools(request)
  if (first === undefined) return []
  const other = others.find(({ model }) => model !== first.model)
  if (other !== undefined) {
    const param = `${other.param}.model`
    throw unsupportedField(param, `must be ${JSON.stringify(first.model)}, as in ${first.param}.`)
  }
  return [first]
}

/** Returns the maximum usage of image models, which read the conversation and write `max_tool_calls` images (default 2). */
export function imageToolEstimate(
  request: Readonly<Record<string, unknown>>,
  inputTokens: number,
): readonly ModelUsage[] {
  const { max_tool_calls: bound } = request
  const images = typeof bound === 'number' ? Math.max(bound, 0) : ASSUMED_IMAGES
  const most = imageToolUsage(request, images, inputTokens)
  return most === undefined ? [] : [most]
}

/** Returns the most that images which each read `inputTokens` use, or `undefined` if the request has no image tool. */
export function imageToolUsage(
  request: Readonly<Record<string, unknown>>,
  images: number,
  inputTokens: number,
): { readonly model: string; readonly usage: UsageCounts } | undefined {
  const tools = imageTools(request)
  const model = tools[0]?.model
  if (model === undefined) return undefined
  const outputTokens = images * Math.max(...tools.map(tokensPerImage))
  return { model, usage: { inputTokens: images * inputTokens, outputTokens, outputImageTokens: outputTokens, images } }
}

/** Returns the maximum number of output tokens of an image. Unknown models count as the default model, whose images need most. */
function tokensPerImage({ model, size, quality, partialImages }: ImageTool): number {
  const { image } = imageFamilyOf(model) ?? imageFamilyOf(DEFAULT_IMAGE_MODEL) ?? {}
  const options = { size: textOf(size), quality: textOf(quality) }
  const partialTokens = typeof partialImages === 'number' ? Math.max(partialImages, 0) * PARTIAL_IMAGE_TOKENS : 0
  return tokensPerPicture(options, { limits: {}, ...(image && { image }) }) + partialTokens
}

/** Returns a string as it is. The vendor rejects other values. */
function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
