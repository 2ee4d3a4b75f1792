import { GatewayError } from '../../../core/errors.ts'
import type {
  InteractionRequest,
  InteractionResponseFormat,
} from '../../../endpoints/images/interactions/interaction-request.ts'
import type { VendorCall, WireRequest } from '../../vendor.ts'
import { apiHeaders, modelId } from '../api-request.ts'
import { refuseKeptFiles } from './kept-files.ts'
import { withoutWebSearch } from './web-search-tools.ts'

// Gemini API, "Interactions: breaking changes": the layout of answers in steps. Ignored where it is the only one.
const REVISION_HEADER = ['api-revision', '2026-05-20'] as const

// The vendor's name of the size that callers write 512px.
const SIZE_512 = { ours: '512px', theirs: '512' }

/**
 * Writes an interaction: the caller's request with the vendor's ids and size, without web-search tools and without
 * `service_tier`, which changes what the operator pays. It is written anew and not edited, so that a member which stands in
 * the caller's text twice goes out once, with the value that was checked.
 * @param basePath Path up to and including the version: `/v1beta`.
 * @throws GatewayError `unsupported_parameter` for a conversation whose id at the vendor is not known, and for pictures that are
 *   kept there.
 */
export function interactionToWire(call: VendorCall<InteractionRequest>, basePath: string): WireRequest {
  refuseKeptFiles(call.request)
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
  throw new GatewayError('unsupported_parameter', {
    message: 'previous_interaction_id: this interaction cannot be continued.',
    param: 'previous_interaction_id',
  })
}
