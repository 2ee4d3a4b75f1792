import { SAMPLINGS_WITH_TOOLS } from '../../catalog/prices/plausible-usage.ts'
import type { BillingFields } from '../../catalog/prices/prices.ts'
import { isJsonObject } from '../../core/json.ts'
import { chatFieldParam, chatSurcharges, pluginExtras } from '../chat/chat-surcharges.ts'
import type { ExtraFeature } from '../endpoint.ts'

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
