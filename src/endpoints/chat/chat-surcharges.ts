import { type BillingFields, THINKING_FIELD, THINKING_OFF, THINKING_ON } from '../../catalog/prices/prices.ts'
import { isJsonObject } from '../../core/json.ts'
import { ORDINARY_TIER } from '../../core/usage.ts'
import type { ExtraFeature } from '../endpoint.ts'

/** Price fields of requests that vendors charge more for than the token prices of their ordinary price list. */
export const CHAT_SURCHARGES = [
  'service_tier',
  'web_search',
  'output_audio',
  'output_image',
  'provider_routing',
] as const

const NO_FIELDS: BillingFields = {}

/** Values that leave the decision to the operator's settings at the vendor. */
const OPEN_TIERS: ReadonlySet<unknown> = new Set([undefined, null, 'auto'])

/** Values that never cost more than the ordinary price. */
const ORDINARY_TIERS: ReadonlySet<unknown> = new Set(['default', 'standard', 'flex'])

/** Returns the surcharges of a chat request beyond the token price (OpenAI API reference, "Create chat completion"). */
export function chatSurcharges(request: Readonly<Record<string, unknown>>): BillingFields {
  const { service_tier, modalities, provider } = request
  const isTiered = !OPEN_TIERS.has(service_tier)
  const searches = searchParam(request) !== undefined
  const speaks = Array.isArray(modalities) && modalities.includes('audio')
  // Image tokens cost several times as much as text tokens (OpenRouter, "Image Generation").
  const paints = Array.isArray(modalities) && modalities.includes('image')
  const routes = provider !== undefined && choosesHosts(provider)
  if (!isTiered && !searches && !speaks && !paints && !routes) return NO_FIELDS
  return {
    ...(isTiered ? { service_tier: ORDINARY_TIERS.has(service_tier) ? ORDINARY_TIER : String(service_tier) } : {}),
    ...(searches ? { web_search: 'true' } : {}),
    ...(speaks ? { output_audio: 'true' } : {}),
    ...(paints ? { output_image: 'true' } : {}),
    ...(routes ? { provider_routing: 'true' } : {}),
  }
}

/** Returns the price fields of a chat: surcharges, and its thinking mode (Model Studio, "Deep thinking"). */
export function chatPriceFields(request: Readonly<Record<string, unknown>>): BillingFields {
  const { enable_thinking: thinks } = request
  const fields = chatSurcharges(request)
  return typeof thinks === 'boolean' ? { ...fields, [THINKING_FIELD]: thinks ? THINKING_ON : THINKING_OFF } : fields
}

/** Members of `provider` with which a router picks no more expensive host (OpenRouter, "Provider Routing"). */
const CHEAP_ROUTING: ReadonlySet<string> = new Set(['max_price', 'allow_fallbacks'])

/** Whether a request chooses among the hosts of a model, whose prices differ. */
function choosesHosts(provider: unknown): boolean {
  if (!isJsonObject(provider)) return false
  return Object.entries(provider).some(([name, value]) => {
    if (CHEAP_ROUTING.has(name) || !isOn(value)) return false
    if (Array.isArray(value)) return value.length > 0
    return name === 'sort' ? !sortsByPrice(value) : value !== 'allow'
  })
}

/** The sort key, or an object with it (OpenRouter, "ProviderSortConfig"). Another `partition` allows other models. */
function sortsByPrice(sort: unknown): boolean {
  if (!isJsonObject(sort)) return sort === 'price'
  const { by, partition, ...others } = sort
  return by === 'price' && (partition ?? 'model') === 'model' && Object.keys(others).length === 0
}

/**
 * Search fields of vendors of this dialect, besides OpenAI's own. Their API references say that each search is billed.
 * Some fields are objects, others booleans.
 */
const SEARCH_FIELDS = [
  ...['web_search_options', 'enable_search', 'enable_web_search', 'search_options', 'search_parameters'],
  ...['web_search', 'google_search', 'google_search_retrieval', 'googleSearch', 'search', 'live_search'],
] as const

/** Search tools by type, or by name if built in. Dated types start with these names. */
const SEARCH_TOOLS = [
  'web_search',
  'google_search',
  'googleSearch',
  'x_search',
  'browser_search',
  '$web_search',
] as const

/** Returns the path at which a chat requests searches, or `undefined` if it does not. */
export function searchParam(request: Readonly<Record<string, unknown>>): string | undefined {
  for (let index = 0; index < SEARCH_FIELDS.length; index++) {
    const field = SEARCH_FIELDS[index]!
    if (isOn(request[field])) return field
  }
  const tools = toolsOf(request)
  if (tools.length === 0) return undefined
  const index = tools.findIndex((tool) => isSearch(nameOf(tool)))
  return index === -1 ? undefined : `tools[${index}]`
}

function isSearch(name: string): boolean {
  return SEARCH_TOOLS.some((search) => name.startsWith(search))
}

/** Returns the name of a vendor tool: its type, or the name of a built-in tool. */
function nameOf({ type, function: called }: Readonly<Record<string, unknown>>): string {
  return String(type === 'builtin_function' && isJsonObject(called) ? called['name'] : type)
}

function isOn(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && value !== 'none' && value !== 'disabled'
}

const NO_TOOLS: readonly Readonly<Record<string, unknown>>[] = []

function toolsOf({ tools }: Readonly<Record<string, unknown>>): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(tools) ? tools.filter(isJsonObject) : NO_TOOLS
}

/** Number of searches that the hold of a chat covers if its answer reports how many were made. */
const UNBOUNDED_SEARCHES = 10

/**
 * Returns the number of searches that the hold covers; `undefined` if the chat requests none or pays for one in any
 * case. Only models that are reached through Responses report searches.
 */
export function chatSearches(
  request: Readonly<Record<string, unknown>>,
  protocol: string | undefined,
): number | undefined {
  return protocol === 'responses' && searchParam(request) !== undefined ? UNBOUNDED_SEARCHES : undefined
}

/** Returns the path at which a chat sets a price field, or `undefined` if it is the member of the same name. */
export function chatFieldParam(field: string, request: Readonly<Record<string, unknown>>): string | undefined {
  if (field === 'web_search') return searchParam(request)
  if (field === 'provider_routing') return 'provider'
  return field === 'output_audio' || field === 'output_image' ? 'modalities' : undefined
}

const NO_EXTRAS: readonly ExtraFeature[] = []

/** Tools that the caller runs. */
const CALLERS_TOOLS: ReadonlySet<string> = new Set(['function', 'custom'])

/** Returns the hosted tools and plug-ins of a chat, which the vendor may bill in addition to tokens. */
export function chatExtras(request: Readonly<Record<string, unknown>>): readonly ExtraFeature[] {
  const { tools } = request
  if (!Array.isArray(tools)) return pluginExtras(request)
  const extras: ExtraFeature[] = []
  for (const [index, tool] of toolsOf(request).entries()) {
    const value = nameOf(tool)
    if (!CALLERS_TOOLS.has(value) && !isSearch(value))
      extras.push({ field: 'server_tool', value, param: `tools[${index}]` })
  }
  extras.push(...pluginExtras(request))
  return extras
}

/** Whether a chat requests tools that the vendor runs. After each run the model reads and writes again. */
export function runsTools(request: Readonly<Record<string, unknown>>): boolean {
  return searchParam(request) !== undefined || chatExtras(request).length > 0
}

/** Returns the vendor plug-ins of a chat or a Responses request (OpenRouter SDK, `ResponsesRequestPlugin`). */
export function pluginExtras({ plugins }: Readonly<Record<string, unknown>>): readonly ExtraFeature[] {
  if (!Array.isArray(plugins)) return NO_EXTRAS
  return plugins.map((plugin: unknown, index) => {
    const value = String(isJsonObject(plugin) ? plugin['id'] : plugin)
    return { field: 'server_tool', value, param: `plugins[${index}]` }
  })
}
