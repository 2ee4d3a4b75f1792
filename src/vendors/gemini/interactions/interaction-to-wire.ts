import { isJsonObject } from '../../../core/json.ts'
import type {
  InteractionRequest,
  InteractionResponseFormat,
} from '../../../endpoints/images/interactions/interaction-request.ts'
import { unsupportedParameter } from '../../shared/invalid-response.ts'
import type { VendorCall, WireRequest } from '../../vendor.ts'
import { apiHeaders, modelId } from '../api-request.ts'
import { isVendorFile } from '../conversation-to-wire.ts'

// Requests answers with steps (Gemini API, "Interactions: breaking changes"). Ignored where that is the only layout.
const REVISION_HEADER = ['api-revision', '2026-05-20'] as const

// The vendor's name of the size 512px.
const SIZE_512 = { ours: '512px', theirs: '512' }

/**
 * Writes an interaction: the caller's request with the vendor's ids and size, without web-search tools and without `service_tier`,
 * which changes the operator's price. It is serialized again, so that a repeated member is sent once, with the checked value.
 * @param basePath Path up to and including the version: `/v1beta`.
 * @throws GatewayError `unsupported_parameter` for a conversation without a known vendor id, and for images that are
 *   stored at the vendor.
 */
export function interactionToWire(call: VendorCall<InteractionRequest>, basePath: string): WireRequest {
  refuseVendorFiles(call.request)
  const { model: _model, tools, response_format, previous_interaction_id, service_tier, ...others } = call.request
  const sifted = withoutWebSearch(tools ?? [])
  const body = {
    model: modelId(call.model.upstream),
    ...others,
    ...(response_format === undefined ? {} : { response_format: formatToWire(response_format) }),
    ...(previous_interaction_id === undefined ? {} : { previous_interaction_id: previousUpstreamId(call) }),
    ...(sifted.tools === undefined ? {} : { tools: sifted.tools }),
  }
  return {
    path: `${basePath}/interactions`,
    headers: [...apiHeaders(call.apiKey, call.stream), ...REVISION_HEADER],
    body: JSON.stringify(body),
    dropped: service_tier === undefined ? sifted.removed : [...sifted.removed, 'service_tier'],
  }
}

function formatToWire(format: InteractionResponseFormat): InteractionResponseFormat {
  return format.image_size === SIZE_512.ours ? { ...format, image_size: SIZE_512.theirs } : format
}

function previousUpstreamId({ conversation }: VendorCall<InteractionRequest>): string {
  if (conversation?.previousUpstreamId !== undefined) return conversation.previousUpstreamId
  const param = 'previous_interaction_id'
  throw unsupportedParameter(param, `${param}: this interaction cannot be continued.`)
}

/**
 * Rejects images that are stored at the vendor.
 * @throws GatewayError `unsupported_parameter` naming the block.
 */
export function refuseVendorFiles({ input }: InteractionRequest): void {
  if (typeof input === 'string') return
  for (const [index, block] of input.entries()) {
    if (block.type !== 'image' || block.uri === undefined || !isVendorFile(block.uri)) continue
    const param = `input[${index}].uri`
    throw unsupportedParameter(param, `${param}: images stored at the vendor cannot be used; send the image as data.`)
  }
}

/** Tools of a request except those that access the web. */
interface SiftedTools {
  /** Remaining tools, or `undefined` if there are none. */
  readonly tools: readonly unknown[] | undefined
  /** Paths of the removed tools: `tools[0]`. */
  readonly removed: readonly string[]
}

const WEB_SEARCH = /search|urlcontext|googlemaps|mcpserver/

/**
 * Removes web-search tools from a request (API specification, "Interactions-style image request", `tools`): every tool whose type,
 * or a nested member or type, names searching, reading URLs, maps or a remote tool server, because the vendor would call addresses
 * that the caller chose. The caller's own functions stay, whatever their names.
 */
function withoutWebSearch(tools: readonly unknown[]): SiftedTools {
  const kept: unknown[] = []
  const removed: string[] = []
  for (const [index, tool] of tools.entries()) {
    if (isWebSearch(tool)) removed.push(`tools[${index}]`)
    else kept.push(tool)
  }
  return { tools: kept.length === 0 ? undefined : kept, removed }
}

function isWebSearch(tool: unknown): boolean {
  return !(isJsonObject(tool) && tool['type'] === 'function') && mentionsSearch(tool)
}

// Bodies are nested no deeper than callers' JSON may be (64 levels), so the recursion is bounded.
function mentionsSearch(value: unknown): boolean {
  if (typeof value === 'string') return matches(value)
  if (Array.isArray(value)) return value.some(mentionsSearch)
  if (!isJsonObject(value)) return false
  return Object.entries(value).some(([name, member]) => {
    if (matches(name)) return true
    // Free texts (descriptions, addresses) are not checked.
    return typeof member === 'string' ? /types?$/i.test(name) && matches(member) : mentionsSearch(member)
  })
}

function matches(name: string): boolean {
  return WEB_SEARCH.test(name.toLowerCase().replace(/[^a-z]/g, ''))
}
