import { imageFamilyOf } from '../../catalog/models/image-families.ts'
import { SAMPLINGS_WITH_TOOLS } from '../../catalog/prices/plausible-usage.ts'
import type { BillingFields } from '../../catalog/prices/prices.ts'
import { isJsonObject } from '../../core/json.ts'
import type { ModelUsage, UsageCounts } from '../../core/usage.ts'
import { chatFieldParam, chatSurcharges, pluginExtras } from '../chat/chat-surcharges.ts'
import type { ExtraFeature, InnerModel } from '../endpoint.ts'
import { unsupportedField } from '../field-errors.ts'
import { PARTIAL_IMAGE_TOKENS, tokensPerPicture } from '../images/openai/openai-image-request.ts'

/** Price fields of requests that vendors charge more for than the token prices of their ordinary price list. */
export const RESPONSES_SURCHARGES = [
  'service_tier',
  'web_search',
  'file_search',
  'code_interpreter',
  'provider_routing',
] as const

/** Tools that the vendor runs and charges per call or by time. */
const PAID_TOOLS = ['web_search', 'file_search', 'code_interpreter'] as const

const NO_FIELDS: BillingFields = {}

/** Number of searches that the hold covers if a request sets no limit. */
const UNBOUNDED_SEARCHES = 10

/** Returns the surcharges of a request for a response (OpenAI, "Pricing", built-in tools). */
export function responsesSurcharges(request: Readonly<Record<string, unknown>>): BillingFields {
  const { service_tier, provider_routing } = chatSurcharges(request)
  const used = PAID_TOOLS.filter((name) => hasTool(request, name))
  if (service_tier === undefined && provider_routing === undefined && used.length === 0) return NO_FIELDS
  return {
    ...(service_tier === undefined ? {} : { service_tier }),
    ...(provider_routing === undefined ? {} : { provider_routing }),
    ...Object.fromEntries(used.map((name) => [name, 'true'])),
  }
}

/** Returns the number of searches that the hold covers, or `undefined` if the request cannot search. */
export function responsesSearches(request: Readonly<Record<string, unknown>>): number | undefined {
  if (!hasTool(request, 'web_search')) return undefined
  const { max_tool_calls: bound } = request
  return typeof bound === 'number' ? bound : UNBOUNDED_SEARCHES
}

/** Returns an upper bound of the samplings of a request: one after each round of tools that the vendor runs. */
export function responsesSamplings(request: Readonly<Record<string, unknown>>): number {
  const runsTools = declared(request).some(isRunByVendor) || pluginExtras(request).length > 0
  if (!runsTools) return 1
  const { max_tool_calls: bound } = request
  return Math.max(SAMPLINGS_WITH_TOOLS, typeof bound === 'number' ? bound + 1 : 0)
}

function hasTool(request: Readonly<Record<string, unknown>>, name: string): boolean {
  return declared(request).some(({ type }) => type.startsWith(name))
}

/** Returns the path at which a request sets a price field, if not the member of the same name. Tool types may be dated. */
export function responsesFieldParam(field: string, request: Readonly<Record<string, unknown>>): string | undefined {
  return declared(request).find(({ type }) => type.startsWith(field))?.param ?? chatFieldParam(field, request)
}

/** Tools without a surcharge: those that the caller or another server runs, and those whose models are charged by tokens. */
const FREE_TOOLS: ReadonlySet<string> = new Set([
  'function',
  'custom',
  'namespace',
  'tool_search',
  'mcp',
  // Charged at the price of its own model.
  'image_generation',
  'computer',
  'computer_use_preview',
  'local_shell',
  'apply_patch',
])

/** Whether the vendor runs a tool, or calls the server that does. The image tool does not count, because its images are not text. */
export function isRunByVendor(tool: DeclaredType): boolean {
  return tool.type === 'mcp' || !isFree(tool)
}

/** A local shell is run by the caller. In a container the vendor runs it. */
function isFree({ type, tool: { environment } }: DeclaredType): boolean {
  return FREE_TOOLS.has(type) || (type === 'shell' && isJsonObject(environment) && environment['type'] === 'local')
}

/** Returns what a request uses beyond tokens and known surcharges: other tools that the vendor runs, and its plug-ins. */
export function responsesExtras(request: Readonly<Record<string, unknown>>): readonly ExtraFeature[] {
  const tools = declared(request)
    .filter((tool) => !isFree(tool) && !PAID_TOOLS.some((name) => tool.type.startsWith(name)))
    .map(({ type, param }) => ({ field: 'server_tool', value: type, param }))
  return [...tools, ...pluginExtras(request)]
}

interface DeclaredType {
  readonly type: string
  readonly tool: Readonly<Record<string, unknown>>
  readonly param: string
}

/** Returns the types of all tools of a request, including tools of items and namespaces. */
export function declared({ tools, input }: Readonly<Record<string, unknown>>): readonly DeclaredType[] {
  const types = typesIn(tools, 'tools')
  if (!Array.isArray(input) || !input.some(hasTools)) return types
  const inItems = input.flatMap((item, index) => (hasTools(item) ? typesIn(item.tools, `input[${index}].tools`) : []))
  return [...types, ...inItems]
}

function hasTools(item: unknown): item is { readonly tools: unknown } {
  return isJsonObject(item) && 'tools' in item
}

function typesIn(tools: unknown, path: string): DeclaredType[] {
  if (!Array.isArray(tools)) return []
  return tools.flatMap((tool, index) => {
    if (!isJsonObject(tool) || typeof tool['type'] !== 'string') return []
    const param = `${path}[${index}]`
    return [{ type: tool['type'], tool, param }, ...typesIn(tool['tools'], `${param}.tools`)]
  })
}

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
